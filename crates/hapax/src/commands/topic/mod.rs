//! `hapax topic …`: topics and records over the wire, as any Kafka client would.

mod describe;
mod partitioner;
mod read;
mod write;

use hapax_kafka::{Client, ClientError, Options};
use serde_json::json;

use super::{confirmed, load, print_json};
use crate::cli::{Bootstrap, Doing, Shared, TopicCommand, TopicCreateArgs};
use crate::exit::{Failure, USAGE};

/// The address where a broker is if nobody says.
const USUAL: &str = "127.0.0.1:9092";
/// Nobody answers.
const UNREACHABLE: &str = "HX5100";
/// The broker says no.
const REFUSED: &str = "HX5101";

/// Does what the command line says.
pub(crate) async fn topic(command: TopicCommand, shared: &Shared) -> Result<u8, Failure> {
    let mut client = connect(command.at(), shared)?;
    match command {
        TopicCommand::Create(args) => create(&mut client, &args, shared).await,
        TopicCommand::List { .. } => describe::list(&mut client, shared).await,
        TopicCommand::Describe { topic, .. } => describe::describe(&mut client, &topic, shared).await,
        TopicCommand::Delete { topic, doing, .. } => delete(&mut client, &topic, doing, shared).await,
        TopicCommand::Read(args) => read::read(client, &args, shared).await,
        TopicCommand::Write(args) => write::write(client, &args, shared).await,
    }
}

/// A client for the addresses given, or for the broker of the configuration.
fn connect(at: &Bootstrap, shared: &Shared) -> Result<Client, Failure> {
    let mut addresses = at.bootstrap.clone();
    if addresses.is_empty() {
        let configured = if shared.config.exists() { load(shared)?.config.broker } else { None };
        addresses.push(configured.map_or_else(|| USUAL.to_owned(), |broker| broker.listen));
    }
    Ok(Client::new(addresses, Options { client_id: "hapax-topic".to_owned(), ..Options::default() }))
}

async fn create(client: &mut Client, args: &TopicCreateArgs, shared: &Shared) -> Result<u8, Failure> {
    let settings: Vec<(&str, &str)> = args.settings.iter().map(|(name, value)| (&**name, &**value)).collect();
    client.create_topic(&args.topic, args.partitions.unwrap_or(-1), &settings).await.map_err(|error| failed(&error))?;
    if shared.json {
        print_json(&json!({"topic": args.topic, "created": true}));
    } else {
        println!("Made topic {}.", args.topic);
    }
    Ok(0)
}

async fn delete(client: &mut Client, topic: &str, doing: Doing, shared: &Shared) -> Result<u8, Failure> {
    if !confirmed(doing, &format!("Delete topic {topic} and everything in it?"))? {
        return Ok(0);
    }
    client.delete_topic(topic).await.map_err(|error| failed(&error))?;
    if shared.json {
        print_json(&json!({"topic": topic, "deleted": true}));
    } else {
        println!("Deleted topic {topic}.");
    }
    Ok(0)
}

/// What a client's error is to the one who typed the command.
fn failed(error: &ClientError) -> Failure {
    match error.code() {
        Some(_) => Failure::new(REFUSED, error.to_string()),
        None => {
            let message = format!(
                "{error}; is a broker running there? `hapax broker` starts one, --bootstrap names another address"
            );
            Failure::new(UNREACHABLE, message)
        }
    }
}

/// A mistake in what was typed.
fn usage(message: String) -> Failure {
    Failure::new("HX5001", message).with_exit(USAGE)
}
