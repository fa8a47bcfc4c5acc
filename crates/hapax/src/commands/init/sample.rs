//! The source that `init` was told of, and what its first events look like.

use std::path::{Path, PathBuf};

use hapax_connect::file::{CsvOptions, FileFormat, FileSource, FileSourceConfig, HeaderFrom, RotationRule, many};
use hapax_connect::generate::{GenerateConfig, GenerateSource};
use hapax_engine::decode::csv::Dialect;

use super::UNCLEAR;
use crate::exit::{Failure, USAGE};
use crate::sample::{MOST, Sample, files_to_look_into, first_inputs, first_inputs_of_each, taken_for_a_pattern};

/// Where events come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum From {
    File(String),
    Generate,
}

impl From {
    pub(super) fn parse(text: &str) -> Self {
        match text.strip_prefix("file:").unwrap_or(text) {
            "generate" => Self::Generate,
            path => Self::File(path.to_owned()),
        }
    }

    /// Whether it is a pattern of files.
    pub(super) fn is_pattern(&self) -> bool {
        matches!(self, Self::File(path) if many::is_pattern(path))
    }

    /// A name for the workflow and the table.
    pub(super) fn name(&self) -> String {
        let Self::File(path) = self else { return "orders".to_owned() };
        let path = Path::new(path);
        let stem = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let stem = stem.split('.').next().unwrap_or_default().to_owned();
        let folder = || path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let stem = if stem.contains(['*', '?', '[']) { folder().unwrap_or_default() } else { stem };
        let plain: String =
            stem.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
        let plain = plain.trim_matches('_').to_owned();
        if plain.is_empty() { "events".to_owned() } else { plain }
    }
}

/// How a file's records are written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FileForm {
    pub(super) is_csv: bool,
    /// If it is not what the name says.
    pub(super) delimiter: Option<u8>,
    /// Whether the names of the pattern's files have dates or numbers before their extension.
    pub(super) is_dated: bool,
}

/// Looks at the first events.
pub(super) async fn read(from: &From, folder: &Path) -> Result<(Sample, FileForm), Failure> {
    match from {
        From::Generate => {
            let config = GenerateConfig { count: Some(MOST as u64), ..GenerateConfig::default() };
            let inputs = first_inputs(GenerateSource::new(config), MOST).await?;
            Ok((Sample::of_inputs(&[inputs]), FileForm::default()))
        }
        From::File(written) => {
            let paths = files(written, folder)?;
            let is_csv = is_csv(written);
            let delimiter = paths.first().filter(|_| is_csv).and_then(|path| guess_delimiter(path, written));
            let usual = if written.to_ascii_lowercase().contains(".tsv") { b'\t' } else { b',' };
            let format = if is_csv {
                let dialect = Dialect { delimiter: delimiter.unwrap_or(usual), ..Dialect::default() };
                FileFormat::Csv(CsvOptions { dialect, null: String::new(), header: HeaderFrom::File })
            } else {
                FileFormat::JsonLines
            };
            let open =
                |path| FileSource::new(FileSourceConfig { format: format.clone(), ..FileSourceConfig::new(path) });
            let inputs = first_inputs_of_each(paths.into_iter().map(open).collect()).await?;
            Ok((Sample::of_inputs(&inputs), FileForm { is_csv, delimiter, is_dated: is_dated(written, folder) }))
        }
    }
}

/// Whether all files that a pattern finds are named by days or numbers: then they follow each other, and a key's last value is
/// that of the last file.
fn is_dated(written: &str, folder: &Path) -> bool {
    if !many::is_pattern(written) {
        return false;
    }
    let place = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    let lanes = |rule| -> Vec<String> {
        many::find_stems(written, &place, rule).stems.into_iter().map(|stem| stem.lane).collect()
    };
    let (each, chains) = (lanes(RotationRule::None), lanes(RotationRule::BeforeExtension));
    chains.len() < each.len() && chains.iter().all(|lane| !each.contains(lane))
}

/// Why nothing is written, and what to do about it.
pub(super) fn no_events(from: &From, why: &str) -> String {
    let From::File(written) = from else { return why.to_owned() };
    let cure = if is_csv(written) {
        "The first record must name the fields, and the delimiter be one of , ; | or a tab; else write `csv:` by hand"
    } else {
        "Without `format: csv`, or a name that ends in .csv or .tsv, a file has one JSON object per line. Lines of plain \
         text are read as CSV with one field, `format: csv` and `csv: { header: [line], delimiter: \"\\x01\", quote: none }`"
    };
    format!("{written}: {why}. Nothing was written. {cure}; docs/connectors/file.md tells more")
}

fn is_csv(written: &str) -> bool {
    let path = written.to_ascii_lowercase();
    let bare = [".gz", ".gzip", ".zst", ".zstd"].iter().find_map(|end| path.strip_suffix(end)).unwrap_or(&path);
    bare.ends_with(".csv") || bare.ends_with(".tsv")
}

/// The file, or those of the pattern that are looked into, the newest first.
fn files(written: &str, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let place = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    let unclear = |message: String| Failure::new(UNCLEAR, message).with_exit(USAGE);
    if many::is_pattern(written) {
        many::check_pattern(written).map_err(|why| unclear(format!("\"{written}\" is no pattern: {why}")))?;
        let found = many::find_stems(written, &place, RotationRule::None).stems;
        let none = || {
            let hint = taken_for_a_pattern(written, &place).unwrap_or_default();
            unclear(format!("no file fits \"{written}\" yet: one is needed to see what its events look like{hint}"))
        };
        if found.is_empty() {
            return Err(none());
        }
        return Ok(files_to_look_into(found).into_iter().map(|found| found.path).collect());
    }
    let path = place.join(written);
    if !path.is_file() {
        let message = format!("there is no file {written}: it is needed to see what its events look like");
        return Err(unclear(message));
    }
    Ok(vec![path])
}

/// The delimiter that the first line has, if it is another than the name says.
fn guess_delimiter(path: &Path, written: &str) -> Option<u8> {
    let usual = if written.to_ascii_lowercase().contains(".tsv") { b'\t' } else { b',' };
    let head = std::fs::read(path).ok()?;
    let line = head.split(|byte| *byte == b'\n').next()?;
    let count = |wanted: u8| line.iter().filter(|byte| **byte == wanted).count();
    if count(usual) > 0 {
        return None;
    }
    [b';', b'\t', b'|', b','].into_iter().filter(|byte| count(*byte) > 0).max_by_key(|byte| count(*byte))
}
