//! A wire that is cut when COMMIT passes: before it reaches the server, or before its answer comes back.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::COMMIT_MESSAGE;

/// COMMIT alone in its packet: "READ COMMITTED" passes too.
fn packet() -> Vec<u8> {
    let length = u8::try_from(COMMIT_MESSAGE.len() + 1).unwrap();
    [&[length, 0, 0, 0, 3], COMMIT_MESSAGE.as_bytes()].concat()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    Request,
    Answer,
}

/// Listens for one connection, passes it on to `port`, and cuts it at COMMIT.
pub(super) async fn wire(port: u16, cut: Cut) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (near, _) = listener.accept().await.unwrap();
        let far = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        pass_on(near, far, cut).await;
    });
    own
}

async fn pass_on(mut near: TcpStream, mut far: TcpStream, cut: Cut) {
    let packet = packet();
    let (mut up, mut down) = (vec![0; 65536], vec![0; 65536]);
    loop {
        tokio::select! {
            read = near.read(&mut up) => {
                let Ok(length @ 1..) = read else { return };
                let commit = up[..length].windows(packet.len()).any(|part| part == packet);
                if commit && cut == Cut::Request {
                    return;
                }
                far.write_all(&up[..length]).await.unwrap();
                if commit {
                    // The answer shows that the server has done it; nobody else gets to see it.
                    assert_ne!(far.read(&mut down).await.unwrap(), 0);
                    return;
                }
            }
            read = far.read(&mut down) => {
                let Ok(length @ 1..) = read else { return };
                near.write_all(&down[..length]).await.unwrap();
            }
        }
    }
}
