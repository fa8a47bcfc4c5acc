//! The shipped program: `hapax broker` as a process of its own, in a folder of its own.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

const PATIENCE: Duration = Duration::from_secs(240);

/// One that runs until it is dropped.
#[derive(Debug)]
pub struct Program {
    address: SocketAddr,
    child: Child,
    _folder: tempfile::TempDir,
}

impl Program {
    /// Starts the program at `hapax` on a store, with one more setting of its `broker:` block.
    ///
    /// # Errors
    /// If it ends, or takes no connection in time.
    pub fn start(hapax: &Path, store: &str, setting: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let text = format!("broker: {{ listen: \"{address}\", store: \"{store}\", data: data, {setting} }}\n");
        std::fs::write(folder.path().join("hapax.yaml"), text)?;
        let log = folder.path().join("log");
        let mut command = Command::new(hapax);
        command.arg("broker").current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(std::fs::File::create(&log)?);
        let child = command.spawn().with_context(|| format!("{} does not start", hapax.display()))?;
        let mut program = Self { address, child, _folder: folder };
        let started = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Some(status) = program.child.try_wait()? {
                bail!("hapax broker ended with {status}: {}", std::fs::read_to_string(&log)?);
            }
            ensure!(started.elapsed() < PATIENCE, "hapax broker took no connection within {PATIENCE:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(program)
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The program that was built with this one: `cargo test --workspace` builds all of them.
    ///
    /// # Errors
    /// If it was not.
    pub fn beside_this_one() -> Result<PathBuf> {
        let this = std::env::current_exe()?;
        // target/debug/hapax-conform, or target/debug/deps/conform-0123456789abcdef
        let found = this.ancestors().skip(1).take(2).map(|folder| folder.join("hapax")).find(|path| path.is_file());
        found.context("there is no program `hapax` beside this one: run `cargo build -p hapax` first")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
