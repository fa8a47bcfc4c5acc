//! Which process this is, as others see it: for messages, and to tell whether the holder of a lease still lives.

use std::fs;

/// This process for people: `pid 4711 on HOST`.
#[must_use]
pub fn session_name() -> String {
    let host = rustix::system::uname();
    format!("pid {} on {}", std::process::id(), host.nodename().to_string_lossy())
}

/// A process, named so that the name is never used again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessId {
    /// The machine since its last start, and the process namespace within it; empty if the system does not tell.
    pub machine: String,
    /// The process id within that namespace.
    pub pid: u32,
    /// When the process started, in the machine's own ticks: a process id is used again, this pair is not.
    pub started: u64,
}

/// Whether a process still lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It runs, or is stopped.
    Alive,
    /// It has ended.
    Ended,
    /// It lives on another machine, or the system does not tell.
    Unknown,
}

impl ProcessId {
    /// This process.
    #[must_use]
    pub fn own() -> Self {
        let pid = std::process::id();
        Self { machine: machine(), pid, started: stat(pid).map_or(0, |stat| stat.started) }
    }

    /// Whether it still lives, as far as this machine can tell.
    #[must_use]
    pub fn life(&self) -> Life {
        if self.machine.is_empty() || self.started == 0 || self.machine != machine() {
            return Life::Unknown;
        }
        match stat(self.pid) {
            Some(stat) if stat.started == self.started && stat.state != 'Z' => Life::Alive,
            Some(_) | None => Life::Ended,
        }
    }
}

/// What `/proc` says of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) name: String,
    pub(crate) state: char,
    pub(crate) started: u64,
}

/// Reads `/proc/PID/stat`; none if there is no such process, or no such file system.
pub(crate) fn stat(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn parse_stat(text: &str) -> Option<Stat> {
    // The name is in parentheses and may itself contain any character, parentheses too: the last one ends it.
    let (open, close) = (text.find('(')?, text.rfind(')')?);
    let name = text.get(open + 1..close)?.to_owned();
    let mut fields = text.get(close + 1..)?.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let started = fields.nth(18)?.parse().ok()?;
    Some(Stat { name, state, started })
}

fn machine() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let namespace = fs::read_link("/proc/self/ns/pid");
    match (boot, namespace) {
        (Ok(boot), Ok(namespace)) => format!("{} {}", boot.trim(), namespace.display()),
        (Err(_), _) | (_, Err(_)) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a name with spaces and parentheses does not shift the fields. Method: a line as Linux prints it.
    #[test]
    fn a_process_name_may_contain_anything() {
        let line = "4711 (a) b (c) T 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 98765 20 21";
        assert_eq!(parse_stat(line), Some(Stat { name: "a) b (c".into(), state: 'T', started: 98765 }));
        assert_eq!(parse_stat("4711 (a"), None);
    }

    /// Goal: a live process is told from one that ended, and from one whose id was used again.
    /// Method: this process; a child before and after its end; this process with another start.
    #[test]
    fn the_life_of_a_process_is_seen() {
        let own = ProcessId::own();
        assert_eq!(own.life(), Life::Alive);
        assert_eq!(ProcessId { started: own.started + 1, ..own.clone() }.life(), Life::Ended);
        assert_eq!(ProcessId { machine: "elsewhere".into(), ..own.clone() }.life(), Life::Unknown);
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let started = stat(child.id()).unwrap().started;
        let other = ProcessId { pid: child.id(), started, ..own };
        assert_eq!(other.life(), Life::Alive);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(other.life(), Life::Ended);
        assert!(session_name().starts_with(&format!("pid {} on ", std::process::id())));
    }
}
