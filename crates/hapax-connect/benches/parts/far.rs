//! A server far away: a relay on this machine that holds every byte for a while, in both directions.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// One way, as between two cities: a round trip takes twice as long.
pub(super) const ONE_WAY: Duration = Duration::from_millis(10);

/// Relays connections to `address` for as long as this process lives, and says on which port.
pub(super) fn away(address: &str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let address = address.to_owned();
    thread::spawn(move || {
        for near in listener.incoming() {
            let near = near.expect("a connection");
            let far = TcpStream::connect(&address).expect("the server");
            for one in [&near, &far] {
                one.set_nodelay(true).expect("no delay but ours");
            }
            hold(near.try_clone().expect("a copy"), far.try_clone().expect("a copy"));
            hold(far, near);
        }
    });
    port
}

fn hold(mut from: TcpStream, mut to: TcpStream) {
    let (sender, held) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut buffer = [0; 64 * 1024];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if sender.send((Instant::now() + ONE_WAY, buffer[..length].to_vec())).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || {
        for (due, bytes) in held {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        // The other end may have closed first: then there is nothing left to close.
        drop(to.shutdown(Shutdown::Both));
    });
}
