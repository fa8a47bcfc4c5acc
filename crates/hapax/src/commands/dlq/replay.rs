//! `hapax dlq replay`: letters become events again, by the present configuration.

use std::collections::BTreeMap;

use hapax_engine::batch::Batch;
use hapax_engine::letters::{LetterChoice, LetterStore as _, Replayed, StoredLetter};
use hapax_engine::pipeline::{Origin, Pipeline};
use hapax_engine::source::Source as _;
use hapax_model::epoch::Epoch;
use hapax_model::letter::LetterBytes;
use hapax_model::position::Incarnation;
use serde_json::json;

use super::print_json;
use super::verdict::{Overwrite, Verdict, judge};
use crate::assemble::{AnyBooks, Live, Part, Writer, lanes, plan};
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
    for part in lanes(config).filter(|part| is_meant(part, choice)) {
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
        for part in lanes(config).filter(|part| is_meant(part, choice)) {
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

/// The letters of this part alone. Where there is one lane, those of its earlier names too.
fn narrowed(part: &Part<'_>, choice: &LetterChoice) -> LetterChoice {
    let id = part.id();
    let lane = (part.lane_count() > 1).then_some(id.lane);
    LetterChoice { workflow: Some(id.workflow), sink: Some(id.sink), lane, ..choice.clone() }
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
            *sum.verdicts.entry(judge(letter, live.mode(), part.table().progress)).or_default() += 1;
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
            letter.state == "dead" && judge(letter, live.mode(), part.table().progress).goes_ahead(overwrite)
        };
        let ready: Vec<StoredLetter> = page.iter().filter(goes).cloned().collect();
        if !ready.is_empty() {
            let ids: Vec<i64> = ready.iter().map(|letter| letter.id).collect();
            let batch = batch_of(part, &live, writer.fields(), &ready);
            let done = writer.write(&mut books, &ids, batch).await?;
            sum.done.replayed += done.replayed;
            sum.done.taken += done.taken;
            sum.done.refused.extend(done.refused);
        }
    }
}

/// The letters' inputs, decoded and keyed as if they had just been read.
fn batch_of(part: &Part<'_>, live: &Live, fields: &[hapax_model::field::FieldPath], ready: &[StoredLetter]) -> Batch {
    let source = part.open_source();
    let origin = Origin { source: source.identity(), lane: source.lane().to_owned() };
    let keyer = plan::keyer(part.workflow, part.table(), live.mode());
    let delete_when = part.table().delete_when.clone();
    let pipeline = Pipeline::new(fields, keyer, delete_when, plan::unknown_fields(part.table()), origin);
    let mut pipeline = part.with_transform(pipeline);
    let mut batch = pipeline.batch();
    for letter in ready {
        let LetterBytes::Whole(bytes) = &letter.bytes else { continue };
        let first = batch.inputs.len();
        batch.inputs.set_format(&part.kept_format());
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
