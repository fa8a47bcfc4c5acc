//! `hapax dlq replay`: letters become events again, by the present configuration.

use std::collections::BTreeMap;

use hapax_engine::batch::Batch;
use hapax_engine::books::Books as _;
use hapax_engine::letters::{LetterChoice, LetterStore as _, Replayed, StoredLetter};
use hapax_engine::pipeline::{Origin, Pipeline};
use hapax_engine::source::Source as _;
use hapax_model::epoch::Epoch;
use hapax_model::letter::LetterBytes;
use hapax_model::position::Incarnation;
use hapax_model::units::Rate;
use serde_json::json;

use super::pace::{PAGE, Pace, Watched};
use super::print_json;
use super::verdict::{Overwrite, Verdict, judge, judge_whole};
use crate::assemble::{AnyBooks, Live, Part, Writer, lanes, plan};
use crate::cli::{Doing, Shared};
use crate::commands::confirmed;
use crate::config::Config;
use crate::exit::Failure;

/// Of letters that were refused again, so many are told; all are counted, and keep the newer reason.
const MOST_TOLD: usize = 1000;
/// The code of letters whose input is only kept in part.
const CUT: &str = "HX2003";

/// What would be, or was, replayed.
#[derive(Default)]
struct Sum {
    verdicts: BTreeMap<Verdict, u64>,
    replayed: u64,
    taken: u64,
    refused: u64,
    told: Vec<(i64, String)>,
}

impl Sum {
    fn add(&mut self, done: Replayed) {
        self.replayed += done.replayed;
        self.taken += done.taken;
        self.refused += done.refused.len() as u64;
        let room = MOST_TOLD - self.told.len();
        self.told.extend(done.refused.into_iter().take(room));
    }
}

/// How a replay is wanted.
pub(super) struct Wanted {
    pub(super) doing: Doing,
    pub(super) overwrite: Overwrite,
    pub(super) rate: Option<Rate>,
}

/// Says what it would do; asks; does it, a transaction per page of letters.
pub(super) async fn replay(
    choice: &LetterChoice,
    wanted: &Wanted,
    config: &Config,
    shared: &Shared,
) -> Result<u8, Failure> {
    let overwrite = wanted.overwrite;
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
    let doing_it = !nothing && confirmed(wanted.doing, &format!("Replay {ready} letter(s)?"))?;
    if doing_it {
        let mut pace = Pace::begin(ready, wanted.rate, if shared.json { Watched::No } else { Watched::Yes });
        for part in lanes(config).filter(|part| is_meant(part, choice)) {
            replay_part(&part, choice, overwrite, config, &mut sum, &mut pace).await?;
        }
        pace.end();
    }
    if shared.json {
        print_json(&as_json(&sum));
    } else if doing_it {
        print_done(&sum);
    }
    let refused = sum.verdicts.keys().any(|verdict| !verdict.goes_ahead(overwrite)) || sum.refused > 0;
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
    let (mode, progress) = (part.live().await?.mode(), part.table().progress);
    let (choice, mut after) = (narrowed(part, choice), 0);
    if !choice.names_letters() {
        // There may be millions: they are counted where they are.
        for group in books.causes(&choice, 0).await? {
            let verdict = if group.code == CUT { Verdict::Impossible } else { judge_whole(mode, progress) };
            *sum.verdicts.entry(verdict).or_default() += group.count;
        }
        return Ok(());
    }
    loop {
        let page = books.list(&choice, after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.id;
        for letter in page.iter().filter(|letter| letter.state == "dead") {
            *sum.verdicts.entry(judge(letter, mode, progress)).or_default() += 1;
        }
    }
}

async fn replay_part(
    part: &Part<'_>,
    choice: &LetterChoice,
    overwrite: Overwrite,
    config: &Config,
    sum: &mut Sum,
    pace: &mut Pace,
) -> Result<(), Failure> {
    let Some(mut books) = AnyBooks::of_part(part, config).await? else { return Ok(()) };
    let live = part.live().await?;
    let (choice, mut after) = (narrowed(part, choice), 0);
    let mut writer = Writer::open(part).await?;
    loop {
        let page = books.list(&choice, after, pace.page()).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.id;
        let goes = |letter: &&StoredLetter| {
            letter.state == "dead" && judge(letter, live.mode(), part.table().progress).goes_ahead(overwrite)
        };
        let ready: Vec<StoredLetter> = page.iter().filter(goes).cloned().collect();
        if !ready.is_empty() {
            let ids: Vec<i64> = ready.iter().map(|letter| letter.id).collect();
            let batch = batch_of(part, &live, writer.fields(), &ready);
            sum.add(writer.write(&mut books, &ids, batch).await?);
            pace.passed(ids.len()).await;
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
    println!("{} replayed, {} taken by another meanwhile, {} refused again.", sum.replayed, sum.taken, sum.refused);
    for (id, why) in sum.told.iter().take(10) {
        println!("  letter {id}: {why}");
    }
}

fn as_json(sum: &Sum) -> serde_json::Value {
    let verdicts: serde_json::Map<String, serde_json::Value> =
        sum.verdicts.iter().map(|(verdict, n)| (verdict.name().to_owned(), json!(n))).collect();
    let refused: Vec<_> = sum.told.iter().map(|(id, why)| json!({"id": id, "why": why})).collect();
    json!({"verdicts": verdicts, "replayed": sum.replayed, "taken": sum.taken, "refusedCount": sum.refused,
        "refused": refused})
}
