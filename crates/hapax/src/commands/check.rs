//! `hapax check`: does each guarantee hold, and why. With `--live` the verdict rests on the source and the target as they
//! are: where one cannot be read there is none.

mod resume;

use serde_json::{Value, json};

use super::{load, print_json};
use crate::assemble::{AnyState, Live, Part, parts, why_not_looked_at};
use crate::cli::{CheckArgs, Shared};
use crate::config::{Config, Source};
use crate::exit::{Failure, USAGE};
use crate::sample::{self, Filled, WouldDie};
use hapax_engine::source::SourceError;
use hapax_model::audit::{Audit, StartRefused};

/// Our tables are not there.
const NOT_SET_UP: &str = "HX4015";
/// How many columns of a table are named.
const COLUMNS_SHOWN: usize = 20;
/// How many fields that no column takes.
const FIELDS_SHOWN: usize = 20;

/// What one sink's check found.
struct Finding<'a> {
    part: Part<'a>,
    audit: Audit,
    live: Option<Result<Live, Failure>>,
    source: SourceSeen,
    /// The state store cannot be read, without which a run begins nothing.
    without_state: bool,
    /// Why a run would stop although source and table are fit: what was delivered before does not go on here.
    resume: Option<Failure>,
}

/// What a look at the source told.
enum SourceSeen {
    /// Nobody asked.
    NotAsked,
    /// It cannot be read.
    Unreadable(Failure),
    /// It is a pattern that no file fits yet.
    NoFileYet,
    /// It can be read; with the live table, what its first events fill, and which would be dead letters.
    Readable(Option<(Filled, WouldDie)>),
}

impl Finding<'_> {
    /// What the verdict would rest on and is not to be had.
    fn missing(&self) -> Option<String> {
        let source = matches!(self.source, SourceSeen::Unreadable(_)).then_some("the source cannot be read");
        let target = self.live.as_ref().and_then(|live| live.as_ref().err()).map(why_not_looked_at);
        let state = self.without_state.then_some("the state store cannot be read");
        let missing: Vec<&str> = [source, target, state].into_iter().flatten().collect();
        (!missing.is_empty()).then(|| missing.join(", and "))
    }

    fn live(&self) -> Option<&Live> {
        self.live.as_ref().and_then(|live| live.as_ref().ok())
    }

    /// Why the guarantee is refused. What only the table could tell is not refused without it.
    fn refusal(&self) -> Option<StartRefused> {
        let rests_on_table = matches!(self.live, Some(Err(_))) && self.part.table_decides_mode();
        self.audit.may_start().err().filter(|_| !rests_on_table)
    }

    /// The code with which a run would end, in the order in which it would meet what is wrong.
    fn exit_code(&self) -> u8 {
        if let Some(refusal) = self.refusal() {
            return refusal.exit_code;
        }
        if let Some(Err(failure)) = &self.live {
            return failure.exit_code;
        }
        if self.live().is_some_and(|live| live.would_stop.is_some()) {
            return 1;
        }
        if let Some(failure) = &self.resume {
            return failure.exit_code;
        }
        match &self.source {
            SourceSeen::Unreadable(failure) => failure.exit_code,
            SourceSeen::Readable(Some((_, die))) => u8::from(die.dead > 0 && die.dead == die.inputs),
            SourceSeen::NotAsked | SourceSeen::NoFileYet | SourceSeen::Readable(None) => 0,
        }
    }

    fn headline(&self) -> String {
        match self.missing() {
            Some(missing) if self.refusal().is_none() => {
                format!("{} is not judged: {missing}", self.audit.guarantee)
            }
            Some(_) | None => self.audit.headline(),
        }
    }
}

/// Judges every workflow.
pub(crate) async fn check(args: &CheckArgs, shared: &Shared) -> Result<u8, Failure> {
    let loaded = load(shared)?;
    let state = if args.live { AnyState::look(&loaded.config).await } else { Ok(None) };
    let mut findings = Vec::new();
    for part in parts(&loaded.config) {
        findings.push(find(part, args, &loaded.config, state.as_ref()).await);
    }
    let state = state.err();
    let incomplete: Vec<(&str, &str)> =
        loaded.config.workflows.iter().filter_map(|w| w.incomplete().map(|lacking| (w.id.as_str(), lacking))).collect();
    if shared.json {
        print_json(&as_json(&findings, &incomplete, state.as_ref()));
    } else {
        findings.iter().for_each(|finding| print_finding(finding, args));
        if let Some(failure) = &state {
            println!("state store: {failure}");
        }
        for (id, lacking) in &incomplete {
            println!("{id}: incomplete, it lacks {lacking}");
        }
        if findings.is_empty() && incomplete.is_empty() {
            println!("There are no workflows in {}.", shared.config.display());
        }
    }
    // Without its state store a run begins nothing.
    let judged = match state {
        Some(failure) => failure.exit_code,
        None => findings.iter().map(Finding::exit_code).max().unwrap_or(0),
    };
    // A workflow that is only begun is no mistake; but whoever asks about what is there asks whether it would run.
    let incomplete = if args.live && !incomplete.is_empty() { USAGE } else { 0 };
    Ok(judged.max(incomplete))
}

async fn find<'a>(
    part: Part<'a>,
    args: &CheckArgs,
    config: &Config,
    state: Result<&Option<AnyState>, &Failure>,
) -> Finding<'a> {
    let live = if args.live {
        Some(part.live().await)
    } else if part.table_decides_mode() {
        part.live().await.ok().map(Ok)
    } else {
        None
    };
    let read = live.as_ref().and_then(|live| live.as_ref().ok());
    let mut source = if args.live { look_at_source(&part, read).await } else { SourceSeen::NotAsked };
    // A path without a file, of which a rotated one is read: a run goes on in that.
    if let (SourceSeen::Unreadable(failure), Some(live), Ok(state)) = (&source, read, state)
        && failure.may_pass
        && resume::has_progress_to_judge(&part, live, config, state.as_ref()).await
    {
        source = SourceSeen::Readable(None);
    }
    let audit = part.audit(read);
    let resume = match (read, state) {
        (Some(live), Ok(state)) if args.live && live.would_stop.is_none() => {
            let readable = matches!(source, SourceSeen::Readable(_) | SourceSeen::NoFileYet);
            resume::would_stop(&part, live, config, state.as_ref(), readable).await
        }
        _ => None,
    };
    // One that only lacks our tables was read, and says nothing against the verdict: a run would stop, and so it is told.
    let without_state = state.is_err_and(|failure| failure.code != Some(NOT_SET_UP));
    Finding { part, audit, live, source, without_state, resume }
}

async fn look_at_source(part: &Part<'_>, live: Option<&Live>) -> SourceSeen {
    match sample::first_inputs_of(part, live).await {
        // Whether files that have no order, or are gone, matter to a run depends on where it is: see `resume`.
        Err(SourceError::Gap { .. }) if live.is_some() => SourceSeen::Readable(None),
        Err(error) => SourceSeen::Unreadable(Failure::of_run(error)),
        Ok(None) => SourceSeen::NoFileYet,
        Ok(Some(inputs)) => match live {
            None => SourceSeen::Readable(None),
            Some(live) => {
                let die = sample::would_die(part, live, &inputs).await;
                SourceSeen::Readable(Some((sample::filled(part, live, &inputs), die)))
            }
        },
    }
}

fn print_finding(finding: &Finding<'_>, args: &CheckArgs) {
    let Finding { part, audit, live, source, resume, .. } = finding;
    println!("{} → {}: {}", part.workflow.id, part.sink.name, finding.headline());
    if let Some(source) = part.source_in_words() {
        println!("  source: {source}");
    }
    if args.explain {
        for (lane, files) in part.chains() {
            println!("  files of {lane}, oldest first:");
            files.iter().for_each(|file| println!("    {file}"));
        }
    }
    if let Some(note) = part.order_note(finding.live()) {
        println!("  note: {note}");
    }
    match source {
        SourceSeen::Unreadable(failure) => println!("  source: {failure}"),
        SourceSeen::NoFileYet => {
            println!(
                "  source: no file fits the pattern yet; a run waits for one{}",
                literal_file(part).unwrap_or_default()
            );
        }
        SourceSeen::NotAsked | SourceSeen::Readable(_) => {}
    }
    match live {
        Some(Ok(live)) => {
            println!("  table: {}", description(live, source, if args.explain { usize::MAX } else { COLUMNS_SHOWN }));
            print_filled(source);
            live.notes.iter().for_each(|note| println!("  note: {note}"));
            if let Some((code, why)) = &live.would_stop {
                println!("  a run would stop: {code}: {why}");
            }
        }
        Some(Err(failure)) => println!("  table: {failure}"),
        None if part.table_decides_mode() => {
            println!(
                "  note: neither onConflict nor keyFields are written and the table could not be read; taken as append"
            );
        }
        None => {}
    }
    if let Some(failure) = resume {
        println!("  a run would stop: {failure}");
    }
    if let Some(refused) = finding.refusal() {
        println!("  refused ({}): {}", refused.code, refused.reason);
        println!("  cure: {}", refused.cure);
    }
    if finding.missing().is_some() {
        return;
    }
    if args.explain {
        audit.explain().lines().for_each(|line| println!("  {line}"));
    } else {
        if part.workflow.delivery.client_guidance {
            println!("  clients: {}", audit.client_text);
        }
        audit.warnings.iter().for_each(|warning| println!("  note: {warning}"));
    }
}

/// A word on a file whose name was taken for a pattern.
fn literal_file(part: &Part<'_>) -> Option<String> {
    let Source::File(file) = part.source else { return None };
    sample::taken_for_a_pattern(&file.written, &file.many.as_ref()?.folder)
}

fn print_filled(source: &SourceSeen) {
    let SourceSeen::Readable(Some((filled, die))) = source else { return };
    if die.dead > 0 {
        println!("  sample: {} of the first {} input(s) would be dead letters:", die.dead, die.inputs);
        for cause in &die.causes {
            println!("    {}: {}: {}", cause.count, cause.code, cause.example);
        }
        if die.of_other_causes > 0 {
            println!("    and {} of other causes", die.of_other_causes);
        }
    }
    for (wanted, meant) in &filled.meant {
        println!("  sample: none of the first {} event(s) has {wanted}; did you mean {meant}?", filled.events);
    }
    let events = filled.events;
    if events == 0 {
        if die.inputs == 0 {
            println!("  sample: the source has no event yet, so nothing is said of what fills the columns");
        }
        return;
    }
    let to_map: Vec<&str> =
        filled.unfilled.iter().filter(|name| !filled.left_to_database.contains(name)).map(String::as_str).collect();
    if !to_map.is_empty() {
        println!(
            "  sample: none of the first {events} event(s) fills {}; map a field to it under columns, or leave it to the \
             database",
            to_map.join(", ")
        );
    }
    if !filled.empty.is_empty() {
        println!("  sample: empty (NULL) in all of the first {events} event(s): {}", filled.empty.join(", "));
    }
    if !filled.left_out.is_empty() {
        let named = filled.left_out.iter().take(FIELDS_SHOWN).cloned().collect::<Vec<_>>().join(", ");
        let more = match filled.left_out.len().saturating_sub(FIELDS_SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        println!("  sample: fields that no column takes: {named}{more}");
    }
}

fn as_json(findings: &[Finding<'_>], incomplete: &[(&str, &str)], state: Option<&Failure>) -> Value {
    let trouble = |failure: &Failure| json!({"code": failure.code, "message": failure.message});
    let checked: Vec<_> = findings
        .iter()
        .map(|finding| {
            let Finding { part, audit, live, source, resume, .. } = finding;
            let judged = finding.missing().is_none() || finding.refusal().is_some();
            let refused = finding.refusal().map(|r| json!({"code": r.code, "reason": r.reason, "cure": r.cure}));
            let live = live.as_ref().map(|live| match live {
                Ok(live) => json!({
                    "fit": true, "mode": live.mode().name(), "description": description(live, source, usize::MAX), "notes": live.notes,
                    "wouldStop": live.would_stop.as_ref().map(|(code, why)| json!({"code": code, "message": why})),
                }),
                Err(failure) => json!({"fit": false, "code": failure.code, "message": failure.message}),
            });
            let (unreadable, sampled) = match source {
                SourceSeen::Unreadable(failure) => (Some(trouble(failure)), None),
                SourceSeen::Readable(seen) => (None, seen.as_ref()),
                SourceSeen::NotAsked | SourceSeen::NoFileYet => (None, None),
            };
            json!({
                "workflow": part.workflow.id, "sink": part.sink.name, "source": part.source_in_words(), "chains": chains(part), "order": part.order_note(finding.live()),
                "judged": judged, "audit": judged.then_some(audit), "refused": refused, "table": live,
                "sourceUnreadable": unreadable, "wouldStop": resume.as_ref().map(trouble),
                "sample": sampled.map(|(filled, die)| json!({
                    "events": filled.events, "unfilled": filled.unfilled, "empty": filled.empty,
                    "leftOut": filled.left_out, "inputs": die.inputs, "deadLetters": die.dead,
                    "ofOtherCauses": die.of_other_causes,
                    "meant": filled.meant.iter().map(|(wanted, meant)| json!({
                        "wanted": wanted.to_string(), "meant": meant.to_string(),
                    })).collect::<Vec<_>>(),
                    "causes": die.causes.iter().map(|cause| json!({
                        "count": cause.count, "code": cause.code, "cause": cause.fingerprint, "message": cause.example,
                    })).collect::<Vec<_>>(),
                })),
            })
        })
        .collect();
    let incomplete: Vec<_> = incomplete.iter().map(|(id, lacking)| json!({"workflow": id, "lacks": lacking})).collect();
    json!({"checked": checked, "incomplete": incomplete, "stateUnreadable": state.map(trouble)})
}

fn chains(part: &Part<'_>) -> Vec<Value> {
    part.chains().into_iter().map(|(lane, files)| json!({"lane": lane, "files": files})).collect()
}

/// The mode, why it is this one, and the columns that are written, as far as the sample tells.
/// How the table is written; of its columns at most so many are named.
fn description(live: &Live, source: &SourceSeen, most: usize) -> String {
    let unfilled: &[String] = match source {
        SourceSeen::Readable(Some((filled, _))) if filled.events > 0 => &filled.unfilled,
        SourceSeen::Readable(_) | SourceSeen::NotAsked | SourceSeen::Unreadable(_) | SourceSeen::NoFileYet => &[],
    };
    let written: Vec<&str> = live.columns.iter().filter(|name| !unfilled.contains(name)).map(String::as_str).collect();
    let named = written.iter().take(most).copied().collect::<Vec<_>>().join(", ");
    let more = match written.len().saturating_sub(most) {
        0 => String::new(),
        more => format!(" and {more} more columns (--explain names them)"),
    };
    format!("{}: {}; writes {named}{more}", live.mode().name(), live.why)
}
