use super::super::case::RecordFormat;
use super::super::lane_ledger::LoggedEpochs;
use super::super::record_writer::RecordWriter;
use super::*;
use crate::check::history::IN_DOUBT;

/// A stem with 100 records of `shape`, some of them poisoned.
fn written(shape: Shape) -> RecordWriter {
    let dir = tempfile::tempdir().expect("a directory");
    let poisoned = |seed: u64| {
        let writer = RecordWriter::new(shape, RecordFormat::Jsonl, seed);
        writer.stems().add_stem(&dir.path().join(format!("alpha.log.{seed}")));
        writer.append_all(100).expect("written");
        let dead = dead_lines(&writer.stems().stems[0], 60).count();
        (dead > 1).then_some(writer)
    };
    (1..).find_map(poisoned).expect("there is no end of seeds")
}

/// The same, and what an honest target holds after `count` of them.
fn honest(shape: Shape, count: usize) -> (RecordWriter, Found, Vec<LaneLedger>) {
    let writer = written(shape);
    let (found, ledgers) = {
        let stems = writer.stems();
        let stem = &stems.stems[0];
        let mut rows: Vec<Row> = contents_after(shape, stem, count).into_values().collect();
        rows.sort_by_key(|row| row.n);
        let letter = |line: &str| LetterRow { bytes: line.into(), state: "dead".into(), code: "HX2001".into() };
        let letters: Vec<LetterRow> = dead_lines(stem, count).map(letter).collect();
        let dead = letters.len() as u64;
        let totals = [count as u64, count as u64 - dead, 0, dead, 0];
        let logged = Some(LoggedEpochs { count: 2, first: 1, last: 2, totals });
        let ledger = LaneLedger { lane: "/spool/alpha.log".to_owned(), epoch: 2, totals, logged };
        (Found { rows, letters, ..Found::default() }, vec![ledger])
    };
    (writer, found, ledgers)
}

fn kinds(
    shape: Shape,
    extent: Extent,
    count: usize,
    spoil: impl FnOnce(&mut Found, &mut Vec<LaneLedger>, &WrittenStem),
) -> Vec<Anomaly> {
    let (writer, mut found, mut ledgers) = honest(shape, count);
    let stems = writer.stems();
    spoil(&mut found, &mut ledgers, &stems.stems[0]);
    let terms = Terms { shape, place: Place::Sink, doubt: Doubt::Excluded };
    let findings = judge_stems(&stems.stems, terms, extent, &found, &ledgers);
    findings.into_iter().map(|finding| finding.anomaly).collect()
}

const SHAPES: [Shape; 4] = [Shape::Append, Shape::IgnoreEvent, Shape::Update, Shape::Newer];
const STOPPED: Extent = Extent::Beginning { deliverable: Some((0, 70)) };

/// Goal: a right table raises no alarm, whole or stopped in the middle. Method: every mode.
#[test]
fn an_honest_end_is_left_in_peace() {
    for shape in SHAPES {
        assert_eq!(kinds(shape, Extent::Everything, 100, |_, _, _| {}), [], "{shape:?}");
        assert_eq!(kinds(shape, STOPPED, 60, |_, _, _| {}), [], "{shape:?}");
    }
}

/// Goal: a silent loss is seen in every mode, and at the end of a lane, too. Method: a row less; a shorter delivery.
#[test]
fn a_loss_is_found() {
    for shape in SHAPES {
        let less = |found: &mut Found, _: &mut Vec<LaneLedger>, _: &WrittenStem| drop(found.rows.pop());
        assert!(kinds(shape, Extent::Everything, 100, less).contains(&Anomaly::Lost), "{shape:?}");
        let less = |found: &mut Found, _: &mut Vec<LaneLedger>, _: &WrittenStem| drop(found.rows.pop());
        assert!(kinds(shape, STOPPED, 60, less).contains(&Anomaly::Lost), "{shape:?}");
        let short = kinds(shape, Extent::Everything, 60, |_, _, _| {});
        assert!(short.contains(&Anomaly::Ledger), "{shape:?}: {short:?}");
    }
}

/// Goal: at-most-once may leave a record out only where a letter in doubt stands for it. Method: a row less, with and without such a
/// letter, where doubt can be and where it cannot; a letter beside its row.
#[test]
fn only_a_letter_in_doubt_excuses_a_loss() {
    let judged = |place, doubt, with_letter: bool, keeps_row: bool| {
        let (writer, mut found, mut ledgers) = honest(Shape::Append, 100);
        let stems = writer.stems();
        let row = if keeps_row { found.rows.last().cloned() } else { found.rows.pop() }.expect("a row");
        if with_letter {
            let input = stems.stems[0].records.iter().find(|input| input.rows().iter().any(|r| r.n == row.n));
            let bytes = input.expect("its record").line.clone().into_bytes();
            found.letters.push(LetterRow { code: IN_DOUBT.to_owned(), bytes, ..found.letters[0].clone() });
            let [_, delivered, _, dead, ..] = &mut ledgers[0].totals;
            (*delivered, *dead) = (*delivered - 1, *dead + 1);
        }
        let terms = Terms { shape: Shape::Append, place, doubt };
        let findings = judge_stems(&stems.stems, terms, Extent::Everything, &found, &ledgers);
        findings.into_iter().map(|finding| finding.anomaly).filter(|kind| *kind != Anomaly::Ledger).collect::<Vec<_>>()
    };
    assert_eq!(judged(Place::State, Doubt::Allowed, true, false), []);
    assert_eq!(judged(Place::State, Doubt::Allowed, true, true), [], "it may have landed");
    assert_eq!(judged(Place::Sink, Doubt::Allowed, true, true), [Anomaly::InnocentDied]);
    assert_eq!(judged(Place::State, Doubt::Allowed, false, false), [Anomaly::Lost]);
    assert_eq!(judged(Place::Sink, Doubt::Excluded, true, false), [Anomaly::Lost, Anomaly::InnocentDied]);
}

/// Goal: a doubled record is seen. Method: a row again, and a letter again.
#[test]
fn a_doubling_is_found() {
    let twice = |found: &mut Found, _: &mut Vec<LaneLedger>, _: &WrittenStem| found.rows.push(found.rows[9].clone());
    assert!(kinds(Shape::Append, Extent::Everything, 100, twice).contains(&Anomaly::Doubled));
    let twice = |found: &mut Found, _: &mut Vec<LaneLedger>, _: &WrittenStem| {
        found.letters.push(found.letters[0].clone());
    };
    assert!(kinds(Shape::Append, Extent::Everything, 100, twice).contains(&Anomaly::LetterDoubled));
}

/// Goal: an old value that won is seen. Method: put an earlier record of the same key in the place of the last.
#[test]
fn an_old_value_that_wins_is_found() {
    for shape in [Shape::Update, Shape::Newer] {
        let stale = |found: &mut Found, _: &mut Vec<LaneLedger>, stem: &WrittenStem| {
            let last = found.rows.last_mut().expect("a row");
            let earlier = stem.records.iter().flat_map(Input::rows).find(|row| row.order_id == last.order_id);
            *last = earlier.expect("the key was written before").clone();
        };
        assert!(kinds(shape, Extent::Everything, 100, stale).contains(&Anomaly::WrongState), "{shape:?}");
    }
}

/// Goal: records that came after the files changed are seen, though they are records. Method: more than deliverable.
#[test]
fn what_lands_after_the_files_changed_is_found() {
    assert_eq!(kinds(Shape::Append, STOPPED, 80, |_, _, _| {}), [Anomaly::Phantom]);
}

/// Goal: a row of no record is seen. Method: a number that the writer never gave.
#[test]
fn a_decoy_that_lands_is_found() {
    let strange = |found: &mut Found, _: &mut Vec<LaneLedger>, _: &WrittenStem| {
        let decoy = Row { n: super::super::record_writer::DECOYS + 1, ..found.rows[0].clone() };
        found.rows.push(decoy);
    };
    assert!(kinds(Shape::Append, Extent::Everything, 100, strange).contains(&Anomaly::Phantom));
}

/// Goal: where rows and position are two commits, letters are wanted as far as the position was saved, and no less. Method:
/// rows of 60 records with the books of so many that one more was dead; then a letter less.
#[test]
fn letters_are_wanted_as_far_as_the_position_was_saved() {
    let (writer, found, ledgers) = honest(Shape::Append, 60);
    let stems = writer.stems();
    let last_dead = stems.stems[0].records.iter().take(60).rposition(|record| record.fate == Fate::Dead);
    let saved = last_dead.expect("some are dead");
    let letters: Vec<LetterRow> = found.letters[..found.letters.len() - 1].to_vec();
    let dead = letters.len() as u64;
    let totals = [saved as u64, saved as u64 - dead, 0, dead, 0];
    let logged = Some(LoggedEpochs { count: 2, first: 1, last: 2, totals });
    let ledgers: Vec<LaneLedger> = ledgers.into_iter().map(|ledger| LaneLedger { totals, logged, ..ledger }).collect();
    let judged = |letters: &[LetterRow]| {
        let found = Found { rows: found.rows.clone(), letters: letters.to_vec(), ..Found::default() };
        let terms = Terms { shape: Shape::Append, place: Place::State, doubt: Doubt::Excluded };
        let findings = judge_stems(&stems.stems, terms, STOPPED, &found, &ledgers);
        findings.into_iter().map(|finding| finding.anomaly).collect::<Vec<_>>()
    };
    assert_eq!(judged(&letters), []);
    assert!(judged(&letters[1..]).contains(&Anomaly::LetterLost));
}

/// Goal: two files of the same content are each delivered once, and what is missing from either, or there a third time, is seen.
/// Method: an honest table with every row twice; without the second of one; with a third.
#[test]
fn twins_are_delivered_once_each() {
    let judged = |spoil: fn(&mut Vec<Row>)| {
        let (writer, mut found, mut ledgers) = honest(Shape::Append, 100);
        let mut stems = writer.stems();
        let twin = stems.add_stem(std::path::Path::new("bravo.log"));
        stems.stems[twin].records = stems.stems[0].records.clone();
        stems.stems[twin].twin_of = Some(0);
        stems.stems[0].name = "alpha.log".to_owned();
        found.rows.extend(found.rows.clone());
        found.letters.extend(found.letters.clone());
        ledgers.push(LaneLedger { lane: "/spool/bravo.log".to_owned(), ..ledgers[0].clone() });
        spoil(&mut found.rows);
        let terms = Terms { shape: Shape::Append, place: Place::Sink, doubt: Doubt::Excluded };
        let findings = judge_stems(&stems.stems, terms, Extent::Everything, &found, &ledgers);
        findings.into_iter().map(|finding| finding.anomaly).collect::<Vec<_>>()
    };
    assert_eq!(judged(|_| {}), []);
    assert_eq!(judged(|rows| drop(rows.pop())), [Anomaly::Lost]);
    assert_eq!(judged(|rows| drop(rows.remove(0))), [Anomaly::Reordered, Anomaly::Lost]);
    assert_eq!(judged(|rows| rows.push(rows[0].clone())), [Anomaly::Doubled]);
}
