//! `hapax init`: asks from where and to where, looks at both, and writes a commented configuration that passes `check`.
//!
//! Reads: the first events of the source, the live table. Writes: one file, at once and whole, or nothing.
//! Invariant: what it writes was read back by the program's own reader before it was put in its place.

mod answers;
mod compose;
mod fit;
mod naming;
mod sample;
mod target;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use self::answers::Answers;
use self::compose::Draft;
use self::fit::Fit;
use crate::assemble::parts;
use crate::cli::{InitArgs, Shared};
use crate::config;
use crate::exit::{Failure, USAGE};

/// Arguments are missing, and there is nobody to ask.
const MISSING: &str = "HX5090";
/// The file is already there.
const EXISTS: &str = "HX5091";
/// A source or target that cannot be understood or read.
const UNCLEAR: &str = "HX5092";

/// Writes a configuration.
pub(crate) async fn init(args: &InitArgs, shared: &Shared) -> Result<u8, Failure> {
    let output = args.output.clone().unwrap_or_else(|| shared.config.clone());
    if output.exists() && !args.force {
        let message = format!(
            "{} is already there and stays as it is: name another file with --output, or say --force to replace it",
            output.display()
        );
        return Err(Failure::new(EXISTS, message).with_exit(USAGE));
    }
    let folder = output.parent().unwrap_or(Path::new("")).to_path_buf();
    let mut answers = Answers::new(args)?;
    let from = answers.source()?;
    let (sample, form) = sample::read(&from, &folder).await?;
    if let Some(why) = sample.without_event() {
        return Err(Failure::new(UNCLEAR, sample::no_events(&from, &why)).with_exit(USAGE));
    }
    sample.describe().iter().for_each(|line| println!("{line}"));
    let to = answers.target(&folder)?;
    let table = answers.table(&from)?;
    let found = to.describe(&table, &folder).await?;
    let fit = Fit::of(&sample, &found);
    fit.describe(&table).iter().for_each(|line| println!("{line}"));
    let keys = answers.keys(&fit)?;
    let draft = Draft { id: args.id.clone(), from, to, table, form, fit, keys, guarantee: args.guarantee.clone() };
    draft.remarks().iter().for_each(|line| println!("{line}"));
    let text = draft.yaml();
    let verdict = check(&text, &output, &draft)?;
    write(&output, &text)?;
    println!("\nWrote {}. {verdict}", output.display());
    draft.next_steps(&output).iter().for_each(|step| println!("  {step}"));
    Ok(0)
}

/// Reads the text back as `check` would: what is written is right, and what it promises is told.
fn check(text: &str, output: &Path, draft: &Draft) -> Result<String, Failure> {
    let known = Known { path: output, text, variable: draft.to.variable() };
    let loaded = config::load(output, &known).map_err(|problems| Failure::problems(problems.to_string()))?;
    let verdicts = parts(&loaded.config).map(|part| {
        let audit = part.audit(None);
        match audit.may_start() {
            Ok(()) => audit.headline(),
            Err(refused) => format!("`hapax check` will refuse it: {}; {}", refused.reason, refused.cure),
        }
    });
    Ok(verdicts.collect::<Vec<_>>().join("; "))
}

/// The system, with the file as it will be, and the secret that is set later.
struct Known<'a> {
    path: &'a Path,
    text: &'a str,
    variable: Option<(&'static str, String)>,
}

impl config::Surroundings for Known<'_> {
    fn variable(&self, name: &str) -> Option<OsString> {
        let own = self.variable.as_ref().filter(|(known, _)| *known == name).map(|(_, value)| value.into());
        own.or_else(|| config::System.variable(name))
    }

    fn read(&self, path: &Path, at_most: usize) -> io::Result<Vec<u8>> {
        if path == self.path { Ok(self.text.as_bytes().to_vec()) } else { config::System.read(path, at_most) }
    }

    fn list(&self, path: &Path) -> io::Result<Option<Vec<PathBuf>>> {
        if path == self.path { Ok(None) } else { config::System.list(path) }
    }
}

/// The whole file, or none.
fn write(output: &Path, text: &str) -> Result<(), Failure> {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;
    let folder = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(unwritable)?;
    file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(unwritable)?;
    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644)).map_err(unwritable)?;
    file.persist(output).map_err(|error| unwritable(error.error))?;
    Ok(())
}

fn unwritable(error: io::Error) -> Failure {
    Failure::new(
        UNCLEAR,
        format!("the file cannot be written: {error}; check the folder and your right to write there"),
    )
}
