//! Child processes: shown before they run, named when they fail.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root of the repository")
}

/// Where cargo puts what it builds.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// A command that runs in the root of the repository.
pub(crate) fn command<'a>(program: &str, args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

/// Cargo, as the one that started us.
pub(crate) fn cargo<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    command("cargo", args)
}

/// The command as one would type it.
pub(crate) fn line(command: &Command) -> String {
    let envs = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", name.to_string_lossy(), quoted(&value?.to_string_lossy()))));
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    envs.chain(words.map(|word| quoted(&word.to_string_lossy()))).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{word}'") }
}

/// Runs it with our own input and output.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    println!("$ {}", line(command));
    let status = command.status().with_context(|| format!("could not start `{}`", line(command)))?;
    if !status.success() {
        bail!("`{}` failed: {status}", line(command));
    }
    Ok(())
}

/// Runs it, passes its lines on and shows each to `watch`.
pub(crate) fn watch(command: &mut Command, mut watch: impl FnMut(&str)) -> Result<()> {
    println!("$ {}", line(command));
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("could not start `{}`", line(command)))?;
    let output = child.stdout.take().expect("stdout is piped");
    for text in BufReader::new(output).lines() {
        let text = text.with_context(|| format!("could not read the output of `{}`", line(command)))?;
        println!("{text}");
        watch(&text);
    }
    let status = child.wait().with_context(|| format!("could not wait for `{}`", line(command)))?;
    if !status.success() {
        bail!("`{}` failed: {status}", line(command));
    }
    Ok(())
}

/// Runs it and returns what it printed.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("could not start `{}`", line(command)))?;
    if !output.status.success() {
        bail!("`{}` failed: {}\n{}", line(command), output.status, String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{}` printed something that is no text", line(command)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: what is shown can be typed. Method: an environment variable and words that need quotes.
    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let mut command = command("cargo", ["doc", "a b", ""]);
        command.env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(line(&command), "RUSTDOCFLAGS='-D warnings' cargo doc 'a b' ''");
    }

    /// Goal: a failure names its command. Method: one that cannot start, one that fails.
    #[test]
    fn a_failed_child_is_named() {
        let missing = run(&mut command("no-such-program-here", [])).map_err(|error| format!("{error:#}"));
        assert!(missing.is_err_and(|text| text.contains("could not start `no-such-program-here`")));
        let failed = run(&mut command("false", [])).map_err(|error| format!("{error:#}"));
        assert!(failed.is_err_and(|text| text.contains("`false` failed")));
    }

    /// Goal: lines are seen although the child fails. Method: a shell that prints two and ends with 3.
    #[test]
    fn the_lines_of_a_child_are_watched() {
        let mut lines = Vec::new();
        let outcome = watch(&mut command("sh", ["-c", "echo a; echo b; exit 3"]), |line| lines.push(line.to_owned()));
        assert_eq!(lines, ["a", "b"]);
        assert!(outcome.is_err_and(|error| error.to_string().contains("exit status: 3")));
        assert!(read(&mut command("echo", ["x"])).is_ok_and(|text| text == "x\n"));
    }
}
