//! One connection through the proxy: two threads, one for what the client says and one for what the server answers.
//! In PostgreSQL's protocol; MariaDB's is `mysql`.

use std::io::{self, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::fault::{Deed, Watch};
use super::wire::{Frame, Greeting, Statements, frame, greeting, is_error, tag};
use super::{Shared, lock, mysql};
use crate::database::Engine;

const NO_ENCRYPTION: &[u8] = b"N";
/// ReadyForQuery.
const READY: u8 = b'Z';
/// Fails a transaction with a code that nobody else uses.
const SPOIL: &str = "DO $$ BEGIN RAISE SQLSTATE 'HXSPO'; END $$";
const SPOILED: &str = "HXSPO";

/// What the client's thread tells the server's: what the server is about to say is to be dropped or held.
type Expected = Mutex<Option<(Deed, Watch)>>;

/// Serves a connection until one side ends it.
pub(super) fn serve(shared: &Arc<Shared>, client: TcpStream) {
    let id = shared.connections.fetch_add(1, Ordering::SeqCst) + 1;
    // An error here is a side that went away, which the other side sees too.
    drop(match shared.engine {
        Engine::Mysql => mysql::pass(shared, id, client),
        Engine::Postgres | Engine::Sqlite => pass(shared, id, client),
    });
}

fn pass(shared: &Arc<Shared>, id: u64, client: TcpStream) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut from_client = BufReader::new(client.try_clone()?);
    let startup = loop {
        match greeting(&mut from_client)? {
            Greeting::Encryption => (&client).write_all(NO_ENCRYPTION)?,
            Greeting::Cancel(bytes) => return upstream(shared)?.write_all(&bytes),
            Greeting::Startup(bytes) => break bytes,
        }
    };
    let mut server = upstream(shared)?;
    server.set_nodelay(true)?;
    lock(&shared.streams).extend([client.try_clone()?, server.try_clone()?]);
    server.write_all(&startup)?;
    let expected = Arc::new(Expected::default());
    let answers = {
        let (shared, expected) = (Arc::clone(shared), Arc::clone(&expected));
        let (server, client) = (server.try_clone()?, client.try_clone()?);
        std::thread::spawn(move || {
            drop(answers(&shared, id, &server, &client, &expected));
            cut(&server, &client);
        })
    };
    drop(requests(shared, id, &mut from_client, &server, &expected));
    // What the server has already said may still be on its way to a client that asked and left.
    drop(server.shutdown(Shutdown::Write));
    drop(answers.join());
    cut(&server, &client);
    Ok(())
}

pub(super) fn upstream(shared: &Shared) -> io::Result<TcpStream> {
    TcpStream::connect(("127.0.0.1", shared.upstream.load(Ordering::SeqCst)))
}

pub(super) fn cut(server: &TcpStream, client: &TcpStream) {
    // Fails only if they are closed already.
    drop(server.shutdown(Shutdown::Both));
    drop(client.shutdown(Shutdown::Both));
}

/// Passes on what the client says.
fn requests(
    shared: &Shared,
    id: u64,
    client: &mut BufReader<TcpStream>,
    server: &TcpStream,
    expected: &Expected,
) -> io::Result<()> {
    let mut statements = Statements::default();
    let mut known: Vec<Watch> = Vec::new();
    let mut to_server = server;
    loop {
        let message = frame(client)?;
        let text = statements.run_by(&message).unwrap_or_default();
        for statement in text.split(';').map(str::trim) {
            let marked = Watch::ALL.into_iter().find(|watch| watch.knows(statement) && !known.contains(watch));
            known.extend(marked);
            match statement {
                "commit" => {
                    for (watch, deed) in known.drain(..).filter_map(|watch| Some((watch, shared.pass(watch)?))) {
                        *lock(expected) = Some((deed, watch));
                        match deed {
                            Deed::LoseRequest => {
                                shared.note(id, deed, watch);
                                cut(server, client.get_ref());
                                return Ok(());
                            }
                            Deed::Spoil => to_server.write_all(&Frame::query(SPOIL).bytes)?,
                            Deed::DropAnswer | Deed::HoldAnswer => {}
                        }
                    }
                }
                "rollback" => known.clear(),
                _ => {}
            }
        }
        to_server.write_all(&message.bytes)?;
    }
}

/// Passes on what the server answers.
fn answers(shared: &Shared, id: u64, server: &TcpStream, client: &TcpStream, expected: &Expected) -> io::Result<()> {
    let mut from_server = BufReader::new(server.try_clone()?);
    let mut to_client = client;
    loop {
        let message = frame(&mut from_server)?;
        let deed = lock(expected).take_if(|(deed, _)| match deed {
            Deed::DropAnswer | Deed::HoldAnswer => tag(&message).is_some_and(|tag| tag == "COMMIT"),
            Deed::Spoil => is_error(&message, SPOILED),
            Deed::LoseRequest => false,
        });
        if let Some((deed, watch)) = deed {
            shared.note(id, deed, watch);
            match deed {
                Deed::DropAnswer => return Ok(()),
                Deed::HoldAnswer => hold(shared),
                Deed::Spoil => {
                    // The client asked nothing: neither the error nor the end of the answer is for it.
                    while frame(&mut from_server)?.kind != READY {}
                    continue;
                }
                Deed::LoseRequest => {}
            }
        }
        to_client.write_all(&message.bytes)?;
    }
}

/// Waits until the answers are released, or the proxy ends.
pub(super) fn hold(shared: &Shared) {
    let mut released = lock(&shared.released);
    let before = *released;
    while *released == before && !shared.closing.load(Ordering::SeqCst) {
        let waited = shared.release.wait_timeout(released, Duration::from_millis(200));
        released = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
    }
}
