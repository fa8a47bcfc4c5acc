//! The source that `init` was told of, and what its first events look like.

use std::path::{Path, PathBuf};

use hapax_connect::file::many::FoundStem;
use hapax_connect::file::{CsvOptions, FileFormat, FileSource, FileSourceConfig, HeaderFrom, RotationRule, many};
use hapax_connect::generate::{GenerateConfig, GenerateSource};
use hapax_engine::decode::csv::Dialect;

use super::UNCLEAR;
use super::naming::{NameOrder, order_of};
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
#[derive(Debug, Clone, Default)]
pub(super) struct FileForm {
    pub(super) is_csv: bool,
    /// If it is not what the name says.
    pub(super) delimiter: Option<u8>,
    /// Which files of a pattern follow each other.
    pub(super) follow: Following,
}

/// Which files of a pattern follow each other, as far as their names tell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Following {
    /// None: each is a lane of its own.
    #[default]
    Nothing,
    /// Those that rotations, or days, have named: `rotation: beforeExtension`.
    Rotated,
    /// All, in the order of their names: `order: name`.
    ByName {
        /// A longer number would come before shorter ones.
        grows: bool,
    },
    /// All, but not in the order of bytes: the later one, `first`, comes before `second`.
    OutOfOrder { first: String, second: String },
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
            Ok((Sample::of_inputs(&inputs), FileForm { is_csv, delimiter, follow: following(written, folder) }))
        }
    }
}

/// Which files of a pattern follow each other: then a key's last value is that of the last file.
fn following(written: &str, folder: &Path) -> Following {
    if !many::is_pattern(written) {
        return Following::Nothing;
    }
    let place = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    let find = |rule| many::find_stems(written, &place, rule).stems;
    let (each, chains) = (find(RotationRule::None), find(RotationRule::BeforeExtension));
    let names: Vec<&str> = each.iter().filter_map(|stem| stem.path.file_name()?.to_str()).collect();
    let order = order_of(&names.iter().map(|name| many::unpacked_name(name).unwrap_or(name)).collect::<Vec<_>>());
    let is_rotated = chains.len() < each.len() && !chains.iter().any(|c| each.iter().any(|one| one.lane == c.lane));
    let is_kept = |stem: &FoundStem| match &order {
        NameOrder::Unknown => true,
        NameOrder::Right { .. } if stem.names().is_sorted() => true,
        // Numbers fall as rotations have them, or rise as batches have them: only times can tell.
        NameOrder::Right { .. } | NameOrder::Wrong { .. } => times_rise(stem),
    };
    if is_rotated && chains.iter().all(is_kept) {
        return Following::Rotated;
    }
    // A chain lies in one folder, and files that one name stands for are one lane already.
    let in_one_folder = !many::is_pattern(&Path::new(written).parent().unwrap_or(Path::new("")).to_string_lossy());
    if !in_one_folder || find(RotationRule::Suffixes).len() < 2 {
        return Following::Nothing;
    }
    match order {
        NameOrder::Unknown => Following::Nothing,
        NameOrder::Right { grows } => Following::ByName { grows },
        NameOrder::Wrong { first, second } => Following::OutOfOrder { first, second },
    }
}

/// Whether each file of a chain was changed after the one before it.
fn times_rise(stem: &FoundStem) -> bool {
    let changed = |name: &&str| std::fs::metadata(stem.path.with_file_name(name)).and_then(|file| file.modified()).ok();
    let times: Vec<_> = stem.names().iter().map(changed).collect();
    times.windows(2).all(|pair| pair[0] < pair[1])
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
