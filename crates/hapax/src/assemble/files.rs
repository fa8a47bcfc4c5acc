//! The files of a pattern as lanes, for commands that look at deliveries.
//!
//! Reads: directories and the books. Writes: the lanes into the configuration, where `lanes` finds them.
//! Not here: which lane a file is (`hapax-connect`), starting them (`run`).

use hapax_connect::file::many::{KnownLane, list, roll};
use hapax_connect::file::{FileFormat, HeaderFrom};
use hapax_engine::books::Books as _;
use hapax_model::position::DeliveryId;

use super::{AnyBooks, Part, part_of, parts};
use crate::config::checked::FileLane;
use crate::config::{Config, Source};
use crate::exit::Failure;

/// Looks for the files of every pattern, and for the lanes that progress knows.
pub(crate) async fn find_files(config: &mut Config) {
    let mut found = Vec::new();
    for part in parts(config).filter(Part::has_many_files) {
        let Source::File(file) = part.source else { continue };
        let Some(many) = &file.many else { continue };
        let known = known_lanes(&part, config).await.unwrap_or_else(|failure| {
            tracing::warn!(workflow = part.workflow.id, %failure, "what was delivered cannot be read; only files are shown");
            Vec::new()
        });
        let mut rolled = roll(&known, &list(&file.written, &many.folder), &many.folder);
        rolled.sort_by(|a, b| a.name.cmp(&b.name));
        let id = DeliveryId { workflow: part.workflow.id.clone(), sink: part.sink.name.clone(), lane: String::new() };
        found.extend(
            rolled
                .into_iter()
                .map(|lane| (id.clone(), FileLane { name: lane.name, path: lane.path, crowd: Default::default() })),
        );
    }
    for workflow in &mut config.workflows {
        let Some(Source::File(file)) = &mut workflow.source else { continue };
        let Some(many) = &mut file.many else { continue };
        let own = found.iter().filter(|(id, _)| id.workflow == workflow.id);
        many.lanes = own.map(|(id, lane)| (id.sink.clone(), lane.clone())).collect();
    }
}

/// The lanes of a part that progress knows.
pub(crate) async fn known_lanes(part: &Part<'_>, config: &Config) -> Result<Vec<KnownLane>, Failure> {
    let Some(mut books) = AnyBooks::of_part(part, config).await? else { return Ok(Vec::new()) };
    let stored = books.deliveries().await?;
    let own = stored.into_iter().filter(|found| {
        part_of(config, &found.id)
            .is_some_and(|of| of.workflow.id == part.workflow.id && of.sink.name == part.sink.name)
    });
    Ok(own
        .map(|found| KnownLane {
            name: found.id.lane,
            incarnation: found.progress.bookmark.incarnation.text.to_string(),
            offset: found.progress.bookmark.position.offset,
        })
        .collect())
}

impl Part<'_> {
    /// What is read, where a file's path or pattern has told it.
    pub(crate) fn source_in_words(&self) -> Option<String> {
        let Source::File(file) = self.source else { return None };
        let format = match &file.format {
            FileFormat::JsonLines => "JSON lines".to_owned(),
            FileFormat::Csv(csv) => {
                let between = match csv.dialect.delimiter {
                    b'\t' => "tabs".to_owned(),
                    byte => format!("\"{}\"", char::from(byte)),
                };
                match &csv.header {
                    HeaderFrom::File => format!("CSV with {between} between fields, named by the first record"),
                    HeaderFrom::Names(names) => format!("CSV with {between} between fields: {}", names.join(", ")),
                }
            }
        };
        match &file.many {
            None => Some(format!("{}, {format}", file.written)),
            Some(many) => {
                let count = list(&file.written, &many.folder).len();
                Some(format!("{}, {count} file(s) now, each a lane, {format}", file.written))
            }
        }
    }
}
