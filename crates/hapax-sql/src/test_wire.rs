//! A wire that is cut when COMMIT passes: before it reaches the server, or before its answer comes back.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    Request,
    Answer,
}

/// Listens for one connection, passes it on to `port`, and cuts it at `commit`, which is how COMMIT looks on the wire.
pub(crate) async fn wire(port: u16, commit: Vec<u8>, cut: Cut) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let own = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (near, _) = listener.accept().await.unwrap();
        let far = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        pass_on(near, far, &commit, cut).await;
    });
    own
}

async fn pass_on(mut near: TcpStream, mut far: TcpStream, message: &[u8], cut: Cut) {
    let (mut up, mut down) = (vec![0; 65536], vec![0; 65536]);
    loop {
        tokio::select! {
            read = near.read(&mut up) => {
                let Ok(length @ 1..) = read else { return };
                let commit = up[..length].windows(message.len()).any(|part| part == message);
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
