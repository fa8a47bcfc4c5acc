//! Outlives us by a moment: when we end, however we end, the processes that we left are killed.
//!
//! A shell whose input is a pipe that only we hold. It is told which processes are ours; when the pipe closes it kills
//! those that are left. Not here: the servers, which have holders of their own.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

const SCRIPT: &str = "trap '' INT TERM HUP QUIT
ours=' '
while read -r word process; do
  case \"$word\" in
    guard) ours=\"$ours$process \" ;;
    release) case \"$ours\" in *\" $process \"*) ours=\"${ours%% $process *} ${ours#* $process }\" ;; esac ;;
  esac
done
for process in $ours; do kill -9 \"$process\" 2>/dev/null; done";

/// Has the process with this id killed when we end.
///
/// # Errors
/// If there is no shell.
pub fn guard(process: u32) -> std::io::Result<()> {
    tell("guard", process)
}

/// The process with this id has ended, and its id may become another's.
pub fn release(process: u32) {
    // Fails only if the shell is gone, and knows of none then.
    drop(tell("release", process));
}

fn tell(word: &str, process: u32) -> std::io::Result<()> {
    static SHELL: OnceLock<Mutex<Option<ChildStdin>>> = OnceLock::new();
    let mut shell = SHELL.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if shell.is_none() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, "hapax-guardian"]).stdin(Stdio::piped()).stdout(Stdio::null());
        // In a group of its own: who interrupts us at a terminal must not interrupt it.
        *shell = command.stderr(Stdio::null()).process_group(0).spawn()?.stdin.take();
    }
    shell.as_mut().map_or(Ok(()), |shell| writeln!(shell, "{word} {process}"))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, test_kill_process};

    use super::*;
    use crate::child::Child;

    const LEAVE: &str = "HAPAX_PROVE_TEST_LEAVE";

    fn lives(process: i32) -> bool {
        Pid::from_raw(process).is_some_and(|pid| test_kill_process(pid).is_ok())
    }

    /// Starts three processes, ends the second, and says who they are; then waits to be killed.
    fn leave_two_behind() {
        let dir = tempfile::tempdir().expect("a directory");
        let start = |name: &str| {
            let mut sleeper = Command::new("sleep");
            Child::start(name, sleeper.arg("600"), &dir.path().join(name)).expect("it starts")
        };
        let (first, mut second, third) = (start("first"), start("second"), start("third"));
        second.kill();
        println!("left {} {}", first.pid(), third.pid());
        std::thread::sleep(Duration::from_secs(600));
    }

    /// Goal: a prover that is killed leaves no worker behind. Method: another process leaves two and is killed without a
    /// chance to act.
    #[test]
    fn nobody_outlives_a_prover_that_is_killed() {
        if std::env::var_os(LEAVE).is_some() {
            return leave_two_behind();
        }
        let mut leaver = Command::new(std::env::current_exe().expect("a test program has a path"));
        leaver.args(["--exact", "guardian::tests::nobody_outlives_a_prover_that_is_killed", "--nocapture"]);
        let mut leaver = leaver.env(LEAVE, "1").stdout(Stdio::piped()).spawn().expect("it starts");
        let output = BufReader::new(leaver.stdout.take().expect("its output is piped"));
        let line = output.lines().map_while(Result::ok).find(|line| line.contains("left ")).expect("it says whom");
        let left: Vec<i32> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        assert!(left.len() == 2 && left.iter().all(|process| lives(*process)), "{line}");
        leaver.kill().expect("it can be killed");
        leaver.wait().expect("it ends");
        let started = Instant::now();
        while left.iter().any(|process| lives(*process)) {
            assert!(started.elapsed() < Duration::from_secs(120), "{line}: they are still there");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
