//! `hapax dlq replay`: letters become events again, by the present configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hapax_engine::batch::Batch;
use hapax_engine::books::{Books as _, LetterGroup};
use hapax_engine::letters::{LetterChoice, LetterStore as _, ReplayRule, Replayed, StoredLetter};
use hapax_engine::pipeline::{Origin, Pipeline};
use hapax_engine::rows::{RowReader as _, RowState};
use hapax_engine::source::Source as _;
use hapax_model::epoch::Epoch;
use hapax_model::letter::LetterBytes;
use hapax_model::mode::ConflictMode;
use hapax_model::position::Incarnation;
use hapax_model::units::Rate;
use serde_json::json;

use super::choice::{FoundCause, find, is_of, same_cause};
use super::pace::{PAGE, Pace, Watched};
use super::pages::Plan;
use super::print_json;
use super::terms::refuse_other_terms;
use super::verdict::{Allowed, Deletes, Verdict, Writing, judge, judge_known, judge_whole};
use crate::assemble::{AnyBooks, AnyRows, Live, Part, Purpose, Writer, lanes, plan};
use crate::cli::{DlqChoice, Doing, Shared};
use crate::commands::confirmed;
use crate::config::Config;
use crate::exit::Failure;

/// Of letters that were refused again, so many are told; all are counted, and keep the newer reason.
const MOST_TOLD: usize = 1000;
/// Of these, so many are shown to a person.
const SHOWN: usize = 10;
/// The code of letters whose input is only kept in part.
const CUT: &str = "HX2003";

/// What would be, or was, replayed.
#[derive(Default)]
struct Sum {
    verdicts: BTreeMap<Verdict, u64>,
    /// The first letters that would overwrite a row.
    out_of_order: Vec<i64>,
    replayed: u64,
    taken: u64,
    /// Letters that were judged to have a row, and those that were found to have one when they were to be written.
    judged_with_row: u64,
    left_with_row: u64,
    refused: u64,
    told: Vec<(i64, String)>,
}

impl Sum {
    fn judged(&mut self, verdict: Verdict, letters: u64) {
        *self.verdicts.entry(verdict).or_default() += letters;
    }

    /// Letters whose row was written between the look and the replay.
    fn overtaken(&self) -> u64 {
        self.left_with_row.saturating_sub(self.judged_with_row)
    }

    fn names_out_of_order(&mut self, id: i64) {
        if self.out_of_order.len() < MOST_TOLD && !self.out_of_order.contains(&id) {
            self.out_of_order.push(id);
        }
    }

    fn add(&mut self, done: Replayed) {
        self.replayed += done.replayed;
        self.taken += done.taken;
        self.left_with_row += done.present.len() as u64;
        done.present.into_iter().for_each(|id| self.names_out_of_order(id));
        self.refused += done.refused.len() as u64;
        let room = MOST_TOLD - self.told.len();
        self.told.extend(done.refused.into_iter().take(room));
    }
}

/// How a replay is wanted.
pub(super) struct Wanted {
    pub(super) doing: Doing,
    pub(super) allowed: Allowed,
    pub(super) rate: Option<Rate>,
}

/// Says what it would do; asks; does it, a transaction per page of letters.
pub(super) async fn replay(
    choice: &DlqChoice,
    wanted: &Wanted,
    config: &Config,
    shared: &Shared,
) -> Result<u8, Failure> {
    let allowed = wanted.allowed;
    let mut sum = Sum::default();
    // A cause's number is that of all lanes together.
    let causes = if choice.cause.is_some() { Some(find(choice, config, Purpose::Look).await?.causes) } else { None };
    let chosen = Chosen { choice, causes: causes.as_deref(), allowed };
    for part in lanes(config).filter(|part| is_meant(part, choice)) {
        if let Some(mut replaying) = Replaying::open(part, &chosen, config, Purpose::Look).await? {
            replaying.look(&mut sum).await?;
        }
    }
    let ready: u64 = sum.verdicts.iter().filter(|(verdict, _)| verdict.goes_ahead(allowed)).map(|(_, n)| n).sum();
    if !shared.json {
        sum.verdicts.iter().for_each(|(verdict, n)| println!("{n} letter(s): {}", verdict.text(allowed)));
        print_out_of_order(&sum);
    }
    let nothing = ready == 0;
    if nothing && !shared.json {
        println!("Nothing to replay.");
    }
    let doing_it = !nothing && confirmed(wanted.doing, &format!("Replay {ready} letter(s)?"))?;
    if doing_it {
        let mut pace = Pace::begin(ready, wanted.rate, if shared.json { Watched::No } else { Watched::Yes });
        for part in lanes(config).filter(|part| is_meant(part, choice)) {
            if let Some(mut replaying) = Replaying::open(part, &chosen, config, Purpose::Change).await? {
                replaying.replay(&mut sum, &mut pace).await?;
            }
        }
        pace.end();
    }
    if shared.json {
        print_json(&as_json(&sum));
    } else if doing_it {
        print_done(&sum);
    }
    let left = sum.verdicts.keys().any(|verdict| !verdict.goes_ahead(allowed)) || sum.overtaken() > 0;
    Ok(u8::from(left || sum.refused > 0))
}

fn is_meant(part: &Part<'_>, choice: &DlqChoice) -> bool {
    choice.workflow.as_ref().is_none_or(|workflow| *workflow == part.workflow.id)
        && choice.sink.as_ref().is_none_or(|sink| *sink == part.sink.name)
}

/// Which letters are wanted.
struct Chosen<'a> {
    choice: &'a DlqChoice,
    /// Only these causes; none for all.
    causes: Option<&'a [FoundCause]>,
    allowed: Allowed,
}

/// The letters of one part, and what they would be written to.
struct Replaying<'a> {
    part: Part<'a>,
    books: AnyBooks,
    live: Live,
    /// The letters of this part alone. Where there is one lane, those of its earlier names too.
    choice: LetterChoice,
    causes: Vec<LetterGroup>,
    allowed: Allowed,
}

impl<'a> Replaying<'a> {
    /// None if nothing is chosen there.
    async fn open(
        part: Part<'a>,
        chosen: &Chosen<'_>,
        config: &Config,
        purpose: Purpose,
    ) -> Result<Option<Self>, Failure> {
        let Some(mut books) = AnyBooks::of_part(&part, config, purpose).await? else { return Ok(None) };
        let id = part.id();
        let lane = (part.lane_count() > 1).then_some(id.lane);
        let (workflow, sink, ids) = (Some(id.workflow), Some(id.sink), chosen.choice.ids.clone());
        let narrowed = LetterChoice { workflow, sink, lane, ids, ..LetterChoice::default() };
        let mut causes = books.causes(&narrowed, 0).await?;
        if let Some(wanted) = chosen.causes {
            causes.retain(|group| wanted.iter().any(|found| found.is_of(&part) && same_cause(&found.group, group)));
        }
        if causes.is_empty() {
            return Ok(None);
        }
        let live = part.live().await?;
        refuse_other_terms(&part, &mut books, &live, config).await?;
        if let Some((code, why)) = &live.would_stop {
            return Err(Failure::new(code, why.clone()));
        }
        books.check_letter_rights().await?;
        Ok(Some(Self { part, books, live, choice: narrowed, causes, allowed: chosen.allowed }))
    }

    /// Whether only the table can tell which letters are safe: without a row there is none that is newer. Where events
    /// delete rows it cannot; nor where a worker may write one between the look and the replay.
    fn asks_the_table(&self) -> bool {
        !self.allowed.overwrite && judge_known(self.writing()) == Verdict::OutOfOrder
    }

    fn writing(&self) -> Writing {
        let table = self.part.table();
        let deletes = if table.delete_when.is_some() { Deletes::Some } else { Deletes::None };
        let guarantee = self.part.workflow.delivery.guarantee;
        Writing { mode: self.live.mode(), progress: table.progress, deletes, guarantee }
    }

    /// Judges every letter, and writes nothing.
    async fn look(&mut self, sum: &mut Sum) -> Result<(), Failure> {
        let mut rows = if self.asks_the_table() { Some(AnyRows::of_part(&self.part).await?) } else { None };
        if rows.is_none() && !self.choice.names_letters() {
            // There may be millions: they are counted where they are.
            for group in &self.causes {
                let verdict =
                    if group.code == CUT { Verdict::Impossible } else { judge_whole(&group.code, self.writing()) };
                sum.judged(verdict, group.count);
            }
            return Ok(());
        }
        let mut after = 0;
        while let Some(page) = self.page(&mut after, PAGE).await? {
            let (whole, cut): (Vec<StoredLetter>, Vec<_>) =
                page.into_iter().partition(|letter| matches!(letter.bytes, LetterBytes::Whole(_)));
            let present = match &mut rows {
                Some(rows) => self.with_a_row(rows, &whole).await?,
                None => Vec::new(),
            };
            sum.judged(Verdict::Impossible, cut.len() as u64);
            for letter in whole.iter().filter(|letter| !present.contains(&letter.id)) {
                sum.judged(if rows.is_some() { Verdict::Safe } else { judge(letter, self.writing()) }, 1);
            }
            sum.judged(Verdict::OutOfOrder, present.len() as u64);
            sum.judged_with_row += present.len() as u64;
            present.into_iter().for_each(|id| sum.names_out_of_order(id));
        }
        sum.verdicts.retain(|_, letters| *letters > 0);
        Ok(())
    }

    /// The next dead letters, of whatever chosen cause, in the order in which they died; none at the end.
    async fn page(&mut self, after: &mut i64, most: usize) -> Result<Option<Vec<StoredLetter>>, Failure> {
        let only = match self.causes.as_slice() {
            [group] => Some(group.fingerprint.clone()),
            _ => None,
        };
        let mut page = self.books.list(&LetterChoice { cause: only, ..self.choice.clone() }, *after, most).await?;
        let Some(last) = page.last() else { return Ok(None) };
        *after = last.id;
        page.retain(|letter| letter.state == "dead" && self.causes.iter().any(|group| is_of(letter, group)));
        Ok(Some(page))
    }

    /// Those letters one of whose keys has a row: it may be newer than they are.
    async fn with_a_row(&self, rows: &mut AnyRows, letters: &[StoredLetter]) -> Result<Vec<i64>, Failure> {
        let batch = Arc::new(batch_of(&self.part, &self.live, &rows.shape().fields.clone(), letters));
        let events: Vec<usize> = (0..batch.len()).collect();
        let states = rows.states(Arc::clone(&batch), events.clone()).await?;
        let there = |state: &RowState| matches!(state, RowState::Present | RowState::Tombstone);
        let found = events.iter().zip(&states).filter(|(_, state)| there(state));
        let inputs: BTreeSet<usize> = found.map(|(event, _)| batch.event(*event).input()).collect();
        Ok(inputs.into_iter().map(|input| letters[input].id).collect())
    }

    /// Writes them, a transaction per page. Where the order of a row's letters decides what stays, they share one.
    async fn replay(&mut self, sum: &mut Sum, pace: &mut Pace) -> Result<(), Failure> {
        let mut writer = Writer::open(&self.part).await?;
        if self.writing().mode == ConflictMode::Update {
            for ids in self.plan().await?.pages(pace.page()) {
                let page = self.letters(&ids).await?;
                self.write(&mut writer, page, sum, pace).await?;
            }
            return Ok(());
        }
        let mut after = 0;
        while let Some(page) = self.page(&mut after, pace.page()).await? {
            self.write(&mut writer, page, sum, pace).await?;
        }
        Ok(())
    }

    async fn write(
        &mut self,
        writer: &mut Writer,
        mut ready: Vec<StoredLetter>,
        sum: &mut Sum,
        pace: &mut Pace,
    ) -> Result<(), Failure> {
        let (asks, writing) = (self.asks_the_table(), self.writing());
        ready.retain(|letter| {
            let verdict = judge(letter, writing);
            verdict.goes_ahead(self.allowed) || (asks && verdict == Verdict::OutOfOrder)
        });
        if judge_known(writing) == Verdict::InDoubtFirst {
            self.take(&mut ready, sum).await?;
        }
        if !ready.is_empty() {
            let rule = if asks { ReplayRule::OnlyAbsent } else { ReplayRule::Any };
            let batch = batch_of(&self.part, &self.live, writer.fields(), &ready);
            sum.add(writer.write(&mut self.books, &ready, batch, rule).await?);
            pace.passed(ready.len()).await;
        }
        Ok(())
    }
}

impl Replaying<'_> {
    /// All letters, by the rows that they write.
    async fn plan(&mut self) -> Result<Plan, Failure> {
        let (rows, mut plan, mut after) = (AnyRows::of_part(&self.part).await?, Plan::default(), 0);
        while let Some(mut page) = self.page(&mut after, PAGE).await? {
            page.retain(|letter| matches!(letter.bytes, LetterBytes::Whole(_)));
            let batch = batch_of(&self.part, &self.live, &rows.shape().fields, &page);
            let mut keys: Vec<Vec<Vec<u8>>> = vec![Vec::new(); page.len()];
            for (event, key) in batch.events().zip(rows.row_keys(&batch)) {
                keys[event.input()].extend(key);
            }
            for (letter, keys) in page.iter().zip(&keys) {
                plan.add(letter.id, keys.iter().map(Vec::as_slice));
            }
        }
        Ok(plan)
    }

    /// Those of these letters that are still dead.
    async fn letters(&mut self, ids: &[i64]) -> Result<Vec<StoredLetter>, Failure> {
        let mut letters = Vec::with_capacity(ids.len());
        for some in ids.chunks(PAGE) {
            letters
                .extend(self.books.list(&LetterChoice { ids: some.to_vec(), ..self.choice.clone() }, 0, PAGE).await?);
        }
        letters.retain(|letter| letter.state == "dead");
        Ok(letters)
    }
}

impl Replaying<'_> {
    /// Leaves those of `ready` that this replay alone may write: it has marked them as in doubt, or they were in doubt
    /// before, and a person wants them replayed.
    async fn take(&mut self, ready: &mut Vec<StoredLetter>, sum: &mut Sum) -> Result<(), Failure> {
        let known: Vec<i64> = ready.iter().filter(|letter| !letter.is_in_doubt()).map(|letter| letter.id).collect();
        let taken: BTreeSet<i64> = self.books.take_in_doubt(&known).await?.into_iter().collect();
        ready.retain(|letter| letter.is_in_doubt() || taken.contains(&letter.id));
        sum.taken += (known.len() - taken.len()) as u64;
        Ok(())
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

fn print_out_of_order(sum: &Sum) {
    if !sum.out_of_order.is_empty() {
        let shown: Vec<String> = sum.out_of_order.iter().take(SHOWN).map(i64::to_string).collect();
        let more = if sum.out_of_order.len() > SHOWN { ", …" } else { "" };
        println!("  out of order: letter {}{more}", shown.join(", "));
    }
}

fn print_done(sum: &Sum) {
    println!("{} replayed, {} taken by another meanwhile, {} refused again.", sum.replayed, sum.taken, sum.refused);
    if sum.overtaken() > 0 {
        println!("{} found a row that was written meanwhile, and stay dead.", sum.overtaken());
    }
    for (id, why) in sum.told.iter().take(SHOWN) {
        println!("  letter {id}: {why}");
    }
}

fn as_json(sum: &Sum) -> serde_json::Value {
    let mut verdicts = BTreeMap::<&str, u64>::new();
    sum.verdicts.iter().for_each(|(verdict, n)| *verdicts.entry(verdict.name()).or_default() += n);
    let refused: Vec<_> = sum.told.iter().map(|(id, why)| json!({"id": id, "why": why})).collect();
    json!({"verdicts": verdicts, "replayed": sum.replayed, "taken": sum.taken, "refusedCount": sum.refused,
        "refused": refused, "outOfOrder": sum.out_of_order})
}
