//! The process between us and a server: it ends the server on our word, and also when we are gone without one.
//!
//! A shell whose input is a pipe that only we hold. When we end, however we end, the pipe closes: the shell then ends the
//! server at once and removes its directory. It has a process group of its own, so that Ctrl-C reaches only us.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use crate::account::Account;
use crate::error::{Doing, ServiceError};
use crate::product::Product;

/// $1 is the server's scratch directory, $2 and $3 are the signals for both ways to stop, the rest is its command line.
/// The file `running` goes when the server has ended, so that a process that has its number later is left in peace.
const SCRIPT: &str = r#"
directory=$1; fast=$2; immediate=$3; shift 3
exec 3<&0
: >"$directory/running"
"$@" </dev/null >>"$directory/log" 2>&1 3<&- &
server=$!
lives() { [ -e "$directory/running" ] && kill -0 "$server" 2>/dev/null; }
(
  while read -r order <&3; do
    case "$order" in
      fast) lives && kill -s "$fast" "$server" ;;
      immediate) lives && kill -s "$immediate" "$server" ;;
      keep) exit 0 ;;
    esac
  done
  lives && kill -s "$immediate" "$server"
  while lives; do sleep 0.1; done
  rm -rf -- "$directory"
) </dev/null >/dev/null 2>&1 &
exec 3<&-
wait "$server"
rm -f -- "$directory/running"
"#;

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Open transactions are rolled back, everything is written.
    Fast,
    /// At once, like a power cut of the server: it recovers at the next start.
    Immediate,
}

impl Stop {
    const fn order(self) -> &'static str {
        match self {
            Self::Fast => "fast\n",
            Self::Immediate => "immediate\n",
        }
    }
}

/// A running server's keeper.
#[derive(Debug)]
pub(crate) struct Holder {
    shell: Child,
    orders: ChildStdin,
}

impl Holder {
    /// Starts `server`, which works in `directory`.
    pub(crate) fn start(
        product: Product,
        server: &Command,
        directory: &Path,
        account: Option<&Account>,
    ) -> Result<Self, ServiceError> {
        let mut shell = clean(Path::new("/bin/sh"), directory, account);
        shell.args(["-c", SCRIPT, "hapax-holder"]).arg(directory).args(product.signals());
        shell.arg(server.get_program()).args(server.get_args());
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let mut shell = shell.spawn().doing(|| "start /bin/sh".to_owned())?;
        let orders = shell.stdin.take().expect("its input is piped");
        Ok(Self { shell, orders })
    }

    /// Whether the server has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.shell.try_wait(), Ok(None))
    }

    /// Stops the server and waits for its end; one that takes too long is stopped at once.
    pub(crate) fn stop(&mut self, stop: Stop, patience: Duration) {
        for order in [stop.order(), Stop::Immediate.order()] {
            // Fails only if the shell is gone, and the server with it.
            drop(self.orders.write_all(order.as_bytes()));
            let started = Instant::now();
            while !self.has_ended() {
                if started.elapsed() > patience {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        // What never obeys is not waited for: closing the pipe goes on ending it.
    }

    /// Lets go of a server that has ended, and keeps its directory.
    pub(crate) fn release(mut self) {
        drop(self.orders.write_all(b"keep\n"));
        drop(self.shell.wait());
    }
}

/// A command with nothing of our environment in it but the PATH, in the server's directory, under its account.
pub(crate) fn clean(program: &Path, directory: &Path, account: Option<&Account>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().current_dir(directory).env("HOME", directory).env("LC_ALL", "C").stdin(Stdio::null());
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    if let Some(account) = account {
        account.run(&mut command);
    }
    command
}

#[cfg(test)]
#[path = "holder_tests.rs"]
pub(crate) mod tests;
