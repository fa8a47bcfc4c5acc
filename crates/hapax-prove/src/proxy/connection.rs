//! One connection through the proxy: two threads, one for what the client says and one for what the server answers.

use std::io::{self, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::fault::{Deed, Watch};
use super::wire::{Frame, Greeting, Statements, frame, greeting, tag};
use super::{Shared, lock};

const NO_ENCRYPTION: &[u8] = b"N";

/// What the client's thread tells the server's: the answer to the next COMMIT is to be dropped or held.
type Expected = Mutex<Option<(Deed, Watch)>>;

/// Serves a connection until one side ends it.
pub(super) fn serve(shared: &Arc<Shared>, client: TcpStream) {
    let id = shared.connections.fetch_add(1, Ordering::SeqCst) + 1;
    // An error here is a side that went away, which the other side sees too.
    drop(pass(shared, id, client));
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

fn upstream(shared: &Shared) -> io::Result<TcpStream> {
    TcpStream::connect(("127.0.0.1", shared.upstream.load(Ordering::SeqCst)))
}

fn cut(server: &TcpStream, client: &TcpStream) {
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
    loop {
        let mut message = frame(client)?;
        if let Some(statement) = statements.run_by(&message) {
            known.extend(Watch::ALL.into_iter().filter(|watch| watch.knows(&statement)));
            match statement.trim_end_matches(';') {
                "commit" | "commit work" | "end" => {
                    known.dedup();
                    for watch in std::mem::take(&mut known) {
                        match shared.pass(watch) {
                            None => {}
                            Some(deed @ Deed::LoseRequest) => {
                                shared.note(id, deed, watch);
                                cut(server, client.get_ref());
                                return Ok(());
                            }
                            Some(deed @ Deed::RollBack) if message.kind == b'Q' => {
                                shared.note(id, deed, watch);
                                message = Frame::query("ROLLBACK");
                            }
                            Some(Deed::RollBack) => shared.write("cannot roll back: COMMIT was prepared"),
                            Some(deed @ (Deed::DropAnswer | Deed::HoldAnswer)) => {
                                *lock(expected) = Some((deed, watch));
                            }
                        }
                    }
                }
                "rollback" | "abort" => known.clear(),
                _ => {}
            }
        }
        (&mut &*server).write_all(&message.bytes)?;
    }
}

/// Passes on what the server answers.
fn answers(shared: &Shared, id: u64, server: &TcpStream, client: &TcpStream, expected: &Expected) -> io::Result<()> {
    let mut from_server = BufReader::new(server.try_clone()?);
    let mut to_client = client;
    loop {
        let message = frame(&mut from_server)?;
        let committed = tag(&message).is_some_and(|tag| tag == "COMMIT");
        let deed = if committed { lock(expected).take() } else { None };
        match deed {
            Some((deed @ Deed::DropAnswer, watch)) => {
                shared.note(id, deed, watch);
                return Ok(());
            }
            Some((deed @ Deed::HoldAnswer, watch)) => hold(shared, id, deed, watch),
            Some((Deed::LoseRequest | Deed::RollBack, _)) | None => {}
        }
        to_client.write_all(&message.bytes)?;
    }
}

/// Waits until the answers are released, or the proxy ends.
fn hold(shared: &Shared, id: u64, deed: Deed, watch: Watch) {
    let mut released = lock(&shared.released);
    let before = *released;
    shared.note(id, deed, watch);
    while *released == before && !shared.closing.load(Ordering::SeqCst) {
        let waited = shared.release.wait_timeout(released, Duration::from_millis(200));
        released = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
    }
}
