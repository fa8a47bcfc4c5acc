//! `hapax broker`: opens the store, takes the port, leads or stands by, and ends in order.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hapax_broker::broker::Broker;
use hapax_broker::model::BrokerId;
use hapax_broker::server::Listener;
use hapax_broker::store::embedded::{Embedded, EmbeddedOptions};
#[cfg(feature = "postgres")]
use hapax_broker::store::postgres::{PostgresOptions, PostgresStore};
use hapax_broker::store::{Address, Store};
use serde_json::json;

use super::run::{Order, listen, tell};
use super::{load, print_json};
use crate::cli::{BrokerArgs, Shared};
use crate::config::{self, BrokerStore, Http};
use crate::descriptors::Descriptors;
use crate::exit::{Failure, USAGE};
use crate::serve::{BrokerPages, serve};

/// How long requests in work may take to be answered after the process was asked to end.
const GRACE: Duration = Duration::from_secs(10);

/// What is run.
struct Plan {
    broker: config::Broker,
    http: Option<Http>,
}

/// Runs the broker until it is asked to end.
pub(crate) async fn broker(args: &BrokerArgs, shared: &Shared) -> Result<u8, Failure> {
    let plan = plan(args, shared)?;
    match plan.broker.store.clone() {
        BrokerStore::Embedded(folder) => {
            let options = EmbeddedOptions { broker_id: BrokerId(plan.broker.id) };
            let store =
                Embedded::open(&folder, options).map_err(|error| Failure::new(error.code(), error.to_string()))?;
            run(store, format!("one file in {}", folder.display()), plan, shared).await
        }
        #[cfg(feature = "postgres")]
        BrokerStore::Postgres(url) => {
            let place = format!("PostgreSQL, {}", url.target());
            let options = PostgresOptions { url: *url, broker: BrokerId(plan.broker.id) };
            let store = PostgresStore::open(options).await;
            let store = store.map_err(|error| Failure::new(error.code(), error.to_string()))?;
            run(store, place, plan, shared).await
        }
    }
}

/// The configuration, if there is one, under what was typed.
fn plan(args: &BrokerArgs, shared: &Shared) -> Result<Plan, Failure> {
    let unnamed = shared.config == Path::new(config::DEFAULT_FILE) && !shared.config.exists();
    let (broker, http) = if unnamed {
        (None, None)
    } else {
        let config = load(shared)?.config;
        (config.broker, config.http)
    };
    let mut broker = broker.unwrap_or_else(|| config::Broker::unsaid(Path::new("")));
    if let Some(listen) = &args.listen {
        broker.listen = listen.clone();
    }
    broker.id = args.id.unwrap_or(broker.id);
    if let Some(store) = chosen_store(args, &broker.store)? {
        broker.store = store;
    }
    Ok(Plan { broker, http })
}

/// `--store` and `--data`, if one of them was given.
fn chosen_store(args: &BrokerArgs, configured: &BrokerStore) -> Result<Option<BrokerStore>, Failure> {
    let usage = |message: String| Failure::new("HX5001", message).with_exit(USAGE);
    let folder = |given: &Option<PathBuf>| match (given, configured) {
        (Some(folder), _) => folder.clone(),
        (None, BrokerStore::Embedded(folder)) => folder.clone(),
        #[cfg(feature = "postgres")]
        (None, BrokerStore::Postgres(_)) => PathBuf::from("hapax-data/broker"),
    };
    match (args.store.as_deref(), &args.data) {
        (None, None) => Ok(None),
        (None | Some("embedded"), data) => Ok(Some(BrokerStore::Embedded(folder(data)))),
        (Some(_), Some(_)) => {
            Err(usage("--data is the folder of --store embedded, and another store was given".into()))
        }
        (Some(url), None) => by_url(url).map(Some),
    }
}

#[cfg(feature = "postgres")]
fn by_url(url: &str) -> Result<BrokerStore, Failure> {
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        let message = "--store is the word embedded or the URL of a PostgreSQL database, postgres://…";
        return Err(Failure::new("HX5001", message).with_exit(USAGE));
    }
    let url = url.parse::<hapax_sql::postgres::PostgresUrl>();
    let url = url.map_err(|error| Failure::new(error.code(), format!("--store: {error}")).with_exit(USAGE))?;
    Ok(BrokerStore::Postgres(Box::new(url)))
}

#[cfg(not(feature = "postgres"))]
fn by_url(_: &str) -> Result<BrokerStore, Failure> {
    let message =
        "--store takes only the word embedded: this edition has no PostgreSQL; build with --features postgres";
    Err(Failure::new("HX5001", message).with_exit(USAGE))
}

/// Serves until a signal comes or the broker cannot go on.
async fn run<S: Store>(store: S, place: String, plan: Plan, shared: &Shared) -> Result<u8, Failure> {
    // From here on a signal is heard, and does not end the process in the middle of something.
    let (orders, mut ordered) = listen();
    let listener = Listener::bind(&plan.broker.listen).await;
    let listener = listener.map_err(|error| Failure::new(error.code(), error.to_string()))?;
    let address = listener.address();
    let broker = Broker::new(Arc::new(store), plan.broker.told());
    let known = Address { host: address.ip().to_string(), port: address.port() };
    broker.start(known).await.map_err(|error| Failure::new(error.code(), error.to_string()))?;
    let server = listener.serve(Arc::clone(&broker));
    let descriptors = Descriptors::new();
    let counting = descriptors.watch();
    let pages = BrokerPages::new(Arc::clone(&broker), Arc::clone(server.traffic()), descriptors);
    let pages = plan.http.as_ref().map(|http| serve(http, Arc::new(pages))).transpose()?;
    announce(&broker, address, &place, shared);
    tell("READY=1");
    let ended = tokio::select! {
        () = asked_to_end(&mut ordered) => None,
        failed = broker.lead.failed() => Some(failed),
    };
    tell("STOPPING=1");
    server.stop(GRACE).await;
    broker.stop().await;
    orders.abort();
    counting.abort();
    drop(pages);
    match ended {
        None => {
            tracing::info!("the broker ended in order");
            Ok(0)
        }
        Some(failed) => Err(Failure::new(failed.code(), failed.to_string())),
    }
}

/// Only a word to end ends it; its configuration is read when it starts.
async fn asked_to_end(ordered: &mut tokio::sync::mpsc::Receiver<Order>) {
    while let Some(order) = ordered.recv().await {
        match order {
            Order::Drain => return,
            Order::Reload => tracing::warn!("a broker reads its configuration when it starts: start it again"),
        }
    }
}

/// The line that people and scripts wait for.
fn announce<S: Store>(broker: &Broker<S>, address: std::net::SocketAddr, place: &str, shared: &Shared) {
    let topics = broker.catalog.all().len();
    let leads = broker.lead.leads();
    if shared.json {
        print_json(&json!({
            "listen": address.to_string(), "store": place, "id": broker.store.me().0, "topics": topics, "leads": leads,
        }));
        return;
    }
    let role = if leads { "leads" } else { "stands by" };
    let topics = if topics == 1 { "1 topic".to_owned() } else { format!("{topics} topics") };
    println!("Broker {} {role} on {address}: {place}, {topics}.", broker.store.me());
}
