//! The load: librdkafka by a program of ours, Java's producer by Kafka's own `ProducerPerformance`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use hapax_services::{kafka_jars, librdkafka};

use crate::client::{clients, compiled};

/// Where the load programs are.
#[derive(Debug)]
pub struct Load {
    hapax: PathBuf,
    program: PathBuf,
    libraries: PathBuf,
    jars: PathBuf,
}

/// What one run printed: names and numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Printed(Vec<(String, f64)>);

impl Printed {
    /// Reads the pairs `name=number` of a line.
    fn read(line: &str) -> Self {
        let pair = |word: &str| {
            let (name, number) = word.split_once('=')?;
            Some((name.to_owned(), number.parse().ok()?))
        };
        Self(line.split_whitespace().filter_map(pair).collect())
    }

    /// The number of that name.
    ///
    /// # Errors
    /// If there is none.
    pub fn get(&self, name: &str) -> Result<f64> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, number)| *number).with_context(|| format!("the load program printed no {name}: {self:?}"))
    }
}

impl Load {
    /// Compiles and fetches what is needed.
    ///
    /// # Errors
    /// If there is no C compiler, or a package cannot be had.
    pub fn prepare(hapax: &Path) -> Result<Self> {
        let library = librdkafka()?;
        let program = compiled()?.join("load-librdkafka");
        let mut compiler = Command::new("cc");
        compiler.args(["-O2", "-Wall", "-o"]).arg(&program).arg(clients().join("librdkafka/load.c"));
        compiler.arg("-I").arg(&library.headers).arg("-L").arg(&library.libraries).args(["-lrdkafka", "-lpthread"]);
        // What the library itself needs is the system's, and found when the program starts.
        said(compiler.arg("-Wl,--unresolved-symbols=ignore-in-shared-libs"))
            .context("the load program does not compile")?;
        let hapax = hapax.canonicalize().with_context(|| format!("there is no {}", hapax.display()))?;
        Ok(Self { hapax, program, libraries: library.libraries, jars: kafka_jars()? })
    }

    /// Makes a topic of one partition.
    ///
    /// # Errors
    /// If the broker refuses.
    pub fn create(&self, address: &str, topic: &str, settings: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.hapax);
        command.args(["topic", "create", topic, "--partitions", "1", "--bootstrap", address]);
        settings.iter().for_each(|setting| {
            command.args(["--set", setting]);
        });
        said(&mut command).map(drop)
    }

    /// Deletes it, so that the disk does not fill.
    ///
    /// # Errors
    /// If the broker refuses.
    pub fn delete(&self, address: &str, topic: &str) -> Result<()> {
        said(Command::new(&self.hapax).args(["topic", "delete", topic, "--yes", "--bootstrap", address])).map(drop)
    }

    /// One run by librdkafka; `words` as the head of `load.c` has them.
    ///
    /// # Errors
    /// If a record was not acknowledged, or the program fails otherwise.
    pub fn librdkafka(&self, words: &[&str]) -> Result<Printed> {
        let mut command = Command::new(&self.program);
        command.env("LD_LIBRARY_PATH", &self.libraries).args(words);
        said(&mut command).map(|text| Printed::read(&text))
    }

    /// One run by Java's producer: records per second.
    ///
    /// # Errors
    /// If it fails, or prints nothing that we know.
    pub fn java(&self, address: &str, topic: &str, count: u64, size: u64, settings: &[&str]) -> Result<f64> {
        let mut command = Command::new("java");
        command.args(["-Xmx512m", "-Dlog4j2.level=ERROR", "-cp"]).arg(self.jars.join("*"));
        command.arg("org.apache.kafka.tools.ProducerPerformance").args(["--bootstrap-server", address]);
        command.args(["--topic", topic, "--throughput", "-1"]);
        command.args(["--num-records", &count.to_string(), "--record-size", &size.to_string()]);
        command.args(["--command-property", "acks=all", "enable.idempotence=true"]).args(settings);
        java_rate(&said(&mut command)?).context("ProducerPerformance printed no rate")
    }
}

/// The last line is the sum: `500000 records sent, 65321.1 records/sec (…)`.
fn java_rate(text: &str) -> Option<f64> {
    let line = text.lines().rfind(|line| line.contains("99.9th"))?;
    let (before, _) = line.split_once(" records/sec")?;
    before.rsplit(' ').next()?.parse().ok()
}

fn said(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{:?} does not start", command.get_program()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    ensure!(
        output.status.success(),
        "{:?} failed: {}{}",
        command.get_program(),
        text(&output.stdout),
        text(&output.stderr)
    );
    Ok(text(&output.stdout))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: numbers are found in what the programs print, and a missing one is an error. Method: lines as they print them.
    #[test]
    fn printed_numbers_are_found() {
        let printed = Printed::read("rate=512345 seconds=0.976 failed=0\n");
        assert_eq!(printed.get("rate").ok(), Some(512_345.0));
        assert!(printed.get("p50").is_err());
        let text = "1 records sent, 9.1 records/sec (0.01 MB/sec), 1.0 ms avg latency, 2.0 ms max latency.\n\
                    500000 records sent, 65321.1 records/sec (6.23 MB/sec), 1.0 ms avg latency, 2.0 ms max latency, 1 ms 50th, \
                    2 ms 95th, 3 ms 99th, 4 ms 99.9th.\n";
        assert_eq!(java_rate(text), Some(65321.1));
        assert_eq!(java_rate("nothing"), None);
    }
}
