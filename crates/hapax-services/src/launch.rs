//! What the starts of all servers have in common: a free port, patience, and the log's end if it was in vain.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::error::{Doing, ServiceError, tail};
use crate::holder::Holder;
use crate::product::Product;

/// How long a server may take to start or to stop.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const PORT_TRIES: u32 = 10;

/// Runs `launch` with the given port, or with a free one: another one if somebody takes it before the server does.
pub(crate) fn on_a_port(
    given: Option<u16>,
    mut launch: impl FnMut(u16) -> Result<(), ServiceError>,
) -> Result<(), ServiceError> {
    for attempt in 1.. {
        match launch(given.map_or_else(free_port, Ok)?) {
            Err(ServiceError::NoAnswer { log, .. })
                if given.is_none() && attempt < PORT_TRIES && log.contains("Address already in use") => {}
            outcome => return outcome,
        }
    }
    Ok(())
}

/// Waits until the server that `holder` holds answers, as `is_ours` sees it.
pub(crate) fn wait_until_it_answers(
    product: Product,
    port: u16,
    log: &Path,
    holder: &mut Holder,
    is_ours: impl Fn() -> bool,
) -> Result<(), ServiceError> {
    let started = Instant::now();
    loop {
        let ended = holder.has_ended();
        if !ended && is_ours() {
            return Ok(());
        }
        let what = match ended {
            true => "ended while it was starting",
            false if started.elapsed() > PATIENCE => "did not answer in time",
            false => {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            }
        };
        return Err(ServiceError::NoAnswer { product, port, what: what.to_owned(), log: tail(log) });
    }
}

/// Runs a program to its end.
pub(crate) fn run(command: &mut Command) -> Result<(), ServiceError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().doing(|| format!("start {program}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(ServiceError::Program { program, said })
}

/// A port of loopback that is free now.
pub(crate) fn free_port() -> Result<u16, ServiceError> {
    let listener = TcpListener::bind("127.0.0.1:0").doing(|| "find a free port".to_owned())?;
    Ok(listener.local_addr().doing(|| "find a free port".to_owned())?.port())
}
