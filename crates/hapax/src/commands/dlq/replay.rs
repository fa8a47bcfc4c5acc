//! `hapax dlq replay`: letters become events again, by the present configuration.

use std::collections::BTreeMap;

use hapax_connect::sqlite::inspect::LiveCheck;
use hapax_connect::sqlite::{SqliteIdempotentSink, SqliteSink};
use hapax_engine::batch::Batch;
use hapax_engine::books::Books as _;
use hapax_engine::letters::{LetterChoice, LetterStore as _, Replay as _, Replayed, StoredLetter};
use hapax_engine::pipeline::{Origin, Pipeline};
use hapax_engine::sink::{IdempotentSink as _, Target as _};
use hapax_engine::source::Source as _;
use hapax_model::epoch::Epoch;
use hapax_model::letter::LetterBytes;
use hapax_model::mode::ProgressPlace;
use hapax_model::position::Incarnation;
use serde_json::json;

use super::print_json;
use super::verdict::{Overwrite, Verdict, judge};
use crate::assemble::{AnyBooks, Part, parts, plan};
use crate::cli::{Doing, Shared};
use crate::commands::confirmed;
use crate::config::Config;
use crate::exit::Failure;

/// How many letters one transaction replays.
pub(super) const PAGE: usize = 1000;

/// What would be, or was, replayed.
#[derive(Default)]
struct Sum {
    verdicts: BTreeMap<Verdict, u64>,
    done: Replayed,
}

/// Says what it would do; asks; does it, a transaction per thousand letters.
pub(super) async fn replay(
    choice: &LetterChoice,
    doing: Doing,
    overwrite: Overwrite,
    config: &Config,
    shared: &Shared,
) -> Result<u8, Failure> {
    let mut sum = Sum::default();
    for part in parts(config).filter(|part| is_meant(part, choice)) {
        look(&part, choice, config, &mut sum).await?;
    }
    let ready: u64 = sum.verdicts.iter().filter(|(verdict, _)| verdict.goes_ahead(overwrite)).map(|(_, n)| n).sum();
    if !shared.json {
        sum.verdicts.iter().for_each(|(verdict, n)| println!("{n} letter(s): {}", verdict.text(overwrite)));
    }
    let nothing = ready == 0;
    if nothing && !shared.json {
        println!("Nothing to replay.");
    }
    let doing_it = !nothing && confirmed(doing, &format!("Replay {ready} letter(s)?"))?;
    if doing_it {
        for part in parts(config).filter(|part| is_meant(part, choice)) {
            replay_part(&part, choice, overwrite, config, &mut sum).await?;
        }
    }
    if shared.json {
        print_json(&as_json(&sum));
    } else if doing_it {
        print_done(&sum);
    }
    let refused = sum.verdicts.keys().any(|verdict| !verdict.goes_ahead(overwrite)) || !sum.done.refused.is_empty();
    Ok(u8::from(refused))
}

fn is_meant(part: &Part<'_>, choice: &LetterChoice) -> bool {
    choice.workflow.as_ref().is_none_or(|workflow| *workflow == part.workflow.id)
        && choice.sink.as_ref().is_none_or(|sink| *sink == part.sink.name)
}

/// The letters of this part alone.
fn narrowed(part: &Part<'_>, choice: &LetterChoice) -> LetterChoice {
    LetterChoice { workflow: Some(part.workflow.id.clone()), sink: Some(part.sink.name.clone()), ..choice.clone() }
}

async fn look(part: &Part<'_>, choice: &LetterChoice, config: &Config, sum: &mut Sum) -> Result<(), Failure> {
    let Some(mut books) = AnyBooks::of_part(part, config).await? else { return Ok(()) };
    let live = part.live().await?;
    let (choice, mut after) = (narrowed(part, choice), 0);
    loop {
        let page = books.list(&choice, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.id;
        for letter in page.iter().filter(|letter| letter.state == "dead") {
            *sum.verdicts.entry(judge(letter, live.mapping.mode, part.sqlite().progress)).or_default() += 1;
        }
    }
}

async fn replay_part(
    part: &Part<'_>,
    choice: &LetterChoice,
    overwrite: Overwrite,
    config: &Config,
    sum: &mut Sum,
) -> Result<(), Failure> {
    let Some(mut books) = AnyBooks::of_part(part, config).await? else { return Ok(()) };
    let live = part.live().await?;
    let (choice, mut after) = (narrowed(part, choice), 0);
    let mut writer = Writer::open(part).await?;
    loop {
        let page = books.list(&choice, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.id;
        let goes = |letter: &&StoredLetter| {
            letter.state == "dead" && judge(letter, live.mapping.mode, part.sqlite().progress).goes_ahead(overwrite)
        };
        let ready: Vec<StoredLetter> = page.iter().filter(goes).cloned().collect();
        if !ready.is_empty() {
            let done = writer.write(part, &live, &mut books, &ready).await?;
            sum.done.replayed += done.replayed;
            sum.done.taken += done.taken;
            sum.done.refused.extend(done.refused);
        }
    }
}

/// Where replayed letters are written.
enum Writer {
    /// Row and mark in one transaction.
    Beside(Box<SqliteSink>),
    /// The row in the target, then the mark in the state store.
    Apart(Box<SqliteIdempotentSink>),
}

impl Writer {
    async fn open(part: &Part<'_>) -> Result<Self, Failure> {
        match part.sqlite().progress {
            ProgressPlace::Sink => {
                let mut sink = SqliteSink::new(part.connector(), part.id());
                sink.inspect().await?;
                Ok(Self::Beside(Box::new(sink)))
            }
            ProgressPlace::State => {
                let mut sink = SqliteIdempotentSink::new(part.connector(), plan::strategy(&part.workflow.delivery));
                sink.inspect().await?;
                Ok(Self::Apart(Box::new(sink)))
            }
        }
    }

    async fn write(
        &mut self,
        part: &Part<'_>,
        live: &LiveCheck,
        books: &mut AnyBooks,
        ready: &[StoredLetter],
    ) -> Result<Replayed, Failure> {
        let ids: Vec<i64> = ready.iter().map(|letter| letter.id).collect();
        match self {
            Self::Beside(sink) => Ok(sink.replay(&ids, batch_of(part, live, sink.fields(), ready)).await?),
            Self::Apart(sink) => {
                let batch = std::sync::Arc::new(batch_of(part, live, sink.fields(), ready));
                let upserted = sink.upsert_batch(std::sync::Arc::clone(&batch)).await?;
                let mut refused: BTreeMap<usize, String> =
                    batch.letters().iter().map(|(input, letter)| (*input, letter.cause.to_string())).collect();
                refused.extend(
                    upserted.rejected.iter().map(|(event, cause)| (batch.event(*event).input(), cause.to_string())),
                );
                let good: Vec<i64> =
                    ids.iter().enumerate().filter(|(n, _)| !refused.contains_key(n)).map(|(_, id)| *id).collect();
                let replayed = books.mark_replayed(&good).await?;
                let refused = refused.into_iter().map(|(input, why)| (ids[input], why)).collect();
                Ok(Replayed { replayed, taken: 0, refused, written: upserted.written })
            }
        }
    }
}

/// The letters' inputs, decoded and keyed as if they had just been read.
fn batch_of(
    part: &Part<'_>,
    live: &LiveCheck,
    fields: &[hapax_model::field::FieldPath],
    ready: &[StoredLetter],
) -> Batch {
    let source = part.open_source();
    let origin = Origin { source: source.identity(), lane: source.lane().to_owned() };
    let keyer = plan::keyer(part.workflow, part.sqlite(), live.mapping.mode);
    let delete_when = part.sqlite().delete_when.clone();
    let mut pipeline = Pipeline::new(fields, keyer, delete_when, plan::unknown_fields(part.sqlite()), origin);
    let mut batch = pipeline.batch();
    for letter in ready {
        let LetterBytes::Whole(bytes) = &letter.bytes else { continue };
        let first = batch.inputs.len();
        batch.inputs.push(letter.position, bytes);
        let incarnation = letter.incarnation.parse().unwrap_or_else(|_| Incarnation::new(1, &letter.incarnation));
        pipeline.process(&mut batch, first, Epoch(letter.epoch), &incarnation);
    }
    batch
}

fn print_done(sum: &Sum) {
    println!(
        "{} replayed, {} taken by another meanwhile, {} refused again.",
        sum.done.replayed,
        sum.done.taken,
        sum.done.refused.len()
    );
    for (id, why) in sum.done.refused.iter().take(10) {
        println!("  letter {id}: {why}");
    }
}

fn as_json(sum: &Sum) -> serde_json::Value {
    let verdicts: serde_json::Map<String, serde_json::Value> =
        sum.verdicts.iter().map(|(verdict, n)| (verdict.name().to_owned(), json!(n))).collect();
    let refused: Vec<_> = sum.done.refused.iter().map(|(id, why)| json!({"id": id, "why": why})).collect();
    json!({"verdicts": verdicts, "replayed": sum.done.replayed, "taken": sum.done.taken, "refused": refused})
}
