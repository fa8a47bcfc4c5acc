//! Tells the service manager how the process stands: a datagram to the socket that systemd names.

use std::os::unix::net::UnixDatagram;

/// Sends `state`, such as `READY=1`; does nothing where nobody listens.
pub(crate) fn tell(state: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET").filter(|path| !path.is_empty()) else { return };
    if let Err(error) = send(&socket, state) {
        tracing::warn!(%error, "the service manager could not be told {state}");
    }
}

fn send(socket: &std::ffi::OsStr, state: &str) -> std::io::Result<()> {
    use std::os::unix::ffi::OsStrExt as _;
    let ours = UnixDatagram::unbound()?;
    match socket.as_bytes().strip_prefix(b"@") {
        #[cfg(target_os = "linux")]
        Some(name) => {
            use std::os::linux::net::SocketAddrExt as _;
            let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
            ours.send_to_addr(state.as_bytes(), &address)?;
        }
        #[cfg(not(target_os = "linux"))]
        Some(_) => {}
        None => {
            ours.send_to(state.as_bytes(), socket)?;
        }
    }
    Ok(())
}
