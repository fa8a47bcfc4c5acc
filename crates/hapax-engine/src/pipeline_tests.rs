use super::*;
use crate::batch::{EventFields, FieldSpan};
use crate::transform::{Given, Wants};
use hapax_model::field::FieldPath;
use hapax_model::key::{DedupStrategy, Uniqueness};
use hapax_model::position::Bookmark;

/// A program by hand: an input with `times: n` becomes n events that carry its `id`; `times: 9` fails at the third.
#[derive(Debug)]
struct Repeat;

#[derive(Debug)]
struct RepeatLane(Wants, usize);

impl MakeTransform for Repeat {
    fn make(&self, layout: &Layout, _: &[FieldPath]) -> Box<dyn Transform> {
        let fields = vec![FieldPath::of_name("id"), FieldPath::of_name("times")];
        let id = layout.slot_of(&fields[0]).expect("the sink wants it");
        Box::new(RepeatLane(Wants { fields, rest: Rest::Left }, id))
    }
}

impl Transform for RepeatLane {
    fn wants(&self) -> &Wants {
        &self.0
    }

    fn run(&mut self, given: &Given<'_>) -> Result<usize, Cause> {
        match &given.fields[1] {
            Some(FieldSpan::Number(range)) => {
                let digits = std::str::from_utf8(&given.bytes[range.clone()]).expect("digits");
                Ok(digits.parse().expect("a count"))
            }
            Some(_) | None => Err(Verdict::TooLong.cause()),
        }
    }

    fn write(&mut self, event: usize, given: &Given<'_>, into: &mut EventFields<'_>) -> Result<(), Cause> {
        if event == 2 && matches!(&given.fields[1], Some(FieldSpan::Number(range)) if given.bytes[range.start] == b'9')
        {
            return Err(Verdict::TooLarge.cause());
        }
        if let Some(id) = &given.fields[0] {
            into.take(self.1, id.clone());
        }
        Ok(())
    }

    fn others(&self, event: usize) -> Others {
        if event == 0 { Others::Kept } else { Others::Gone }
    }

    fn left_out(&mut self, _: usize, _: &Given<'_>, name: &mut dyn FnMut(&str)) {
        name("times");
    }
}

fn pipeline(unknown_fields: UnknownFields, pulse: &Arc<Pulse>) -> Pipeline {
    let keyer = Keyer::new(
        DedupStrategy::content_fields(vec![FieldPath::of_name("id")]),
        Uniqueness::WithVersion,
        KeyNeed::EntityAndEvent,
    );
    let origin = Origin { source: "lines".into(), lane: "0".into() };
    Pipeline::new(&[FieldPath::of_name("id")], keyer, None, unknown_fields, origin)
        .with_transform(&Repeat, Arc::clone(pulse))
}

fn run(pipeline: &mut Pipeline, lines: &[&str]) -> Batch {
    let mut batch = pipeline.batch();
    for (n, line) in lines.iter().enumerate() {
        batch.inputs.push(Position::at(n as u64), line.as_bytes());
    }
    pipeline.process(&mut batch, 0, Epoch(1), &Incarnation::new(1, "only"));
    batch
}

/// Goal: none, one and several events of an input, each with a key of its own, and a failing one leaves nothing behind.
#[test]
fn an_input_becomes_what_its_transform_says() {
    let mut pipeline = pipeline(UnknownFields::Counted, &Arc::default());
    let lines = [
        r#"{"id":1,"times":1,"note":"x"}"#,
        r#"{"id":2,"times":0}"#,
        r#"{"id":3,"times":3}"#,
        r#"{"id":4,"times":9}"#,
        r#"{"id":5}"#,
        r#"{"id":null,"times":2}"#,
        r#"{"id":6,"times":1}"#,
        r#"{"id":7,"times":65537}"#,
    ];
    let batch = run(&mut pipeline, &lines);
    let emitted: Vec<_> = batch.events().map(|event| (event.input(), event.emit())).collect();
    assert_eq!(emitted, [(0, 0), (2, 0), (2, 1), (2, 2), (6, 0)]);
    let dead: Vec<_> = batch.letters().iter().map(|(input, letter)| (*input, letter.cause.code)).collect();
    assert_eq!(dead, [(3, "HX2111"), (4, "HX2110"), (5, "HX2010"), (7, "HX2104")]);
    assert_eq!(batch.filtered(), 1);
    let keys: Vec<_> = batch.events().map(|event| (event.entity_key(), event.event_key())).collect();
    assert_eq!(keys[1].0, keys[2].0);
    assert!(keys[1].1 != keys[2].1 && keys[2].1 != keys[3].1, "the emit index is in the event key");
    assert_eq!(pipeline.unknown().iter().find(|(name, _)| name == "note").map(|(_, n)| *n), Some(1));
}

/// Goal: the events and keys of an input do not depend on its neighbours. Method: all at once, and one by one.
#[test]
fn a_transform_gives_the_same_however_inputs_are_batched() {
    let lines = [r#"{"id":1,"times":2}"#, r#"{"id":2,"times":0}"#, r#"{"id":3,"times":1}"#];
    let whole = run(&mut pipeline(UnknownFields::Counted, &Arc::default()), &lines);
    let mut alone = pipeline(UnknownFields::Counted, &Arc::default());
    let mut keys = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        let mut batch = alone.batch();
        batch.inputs.push(Position::at(n as u64), line.as_bytes());
        alone.process(&mut batch, 0, Epoch(1), &Incarnation::new(1, "only"));
        keys.extend(batch.events().map(|event| event.event_key()));
    }
    assert_eq!(whole.events().map(|event| event.event_key()).collect::<Vec<_>>(), keys);
}

/// Goal: with strict columns a field that no column takes is a dead letter, also one that the transform left there.
#[test]
fn fields_left_by_a_transform_are_judged() {
    let batch = run(&mut pipeline(UnknownFields::Rejected, &Arc::default()), &[r#"{"id":1,"times":1}"#]);
    assert_eq!(batch.letters()[0].1.cause.code, "HX2004");
    assert!(batch.is_empty());
}

/// Goal: an input that was set aside is not run again. Method: one that would succeed.
#[test]
fn an_input_that_was_set_aside_is_a_letter() {
    let pulse = Arc::<Pulse>::default();
    pulse.set_aside(Bookmark::at("only", 1), Verdict::TooLong);
    let mut pipeline = pipeline(UnknownFields::Counted, &pulse);
    let batch = run(&mut pipeline, &[r#"{"id":1,"times":1}"#, r#"{"id":2,"times":1}"#]);
    assert_eq!((batch.len(), batch.letters()[0].0, batch.letters()[0].1.cause.code), (1, 1, "HX2110"));
    assert_eq!(pulse.turn(), 0, "nothing runs any more");
}

/// Goal: events without a key are numbered in the order of their epoch's output; dead and filtered inputs take no number, and
/// how the inputs were polled does not show. Method: the keys against those of numbers counted by hand; one poll and two.
#[test]
fn events_are_numbered_in_their_epoch() {
    let keyer = || Keyer::new(DedupStrategy::EpochSequence, Uniqueness::WithVersion, KeyNeed::Event);
    let only = Incarnation::new(1, "only");
    let lines = [
        r#"{"id":1,"times":1}"#,
        r#"{"id":2,"times":0}"#,
        r#"{"id":3,"times":9}"#,
        r#"{"id":4,"times":3}"#,
        r#"{"id":5,"times":1}"#,
    ];
    let found = |epoch: Epoch, cut: usize| {
        let origin = Origin { source: "lines".into(), lane: "0".into() };
        let fields = [FieldPath::of_name("id")];
        let mut pipeline = Pipeline::new(&fields, keyer(), None, UnknownFields::Counted, origin)
            .with_transform(&Repeat, Arc::default());
        let mut batch = pipeline.batch();
        for (n, line) in lines.iter().enumerate() {
            if cut > 0 && n == cut {
                pipeline.process(&mut batch, 0, epoch, &only);
            }
            batch.inputs.push(Position::at(n as u64), line.as_bytes());
        }
        pipeline.process(&mut batch, cut, epoch, &only);
        batch.events().map(|event| event.event_key()).collect::<Vec<_>>()
    };
    let counted = |epoch: Epoch| {
        let facts = |sequence| KeyFacts {
            source: "lines",
            lane: "0",
            incarnation: &only,
            position: Position::at(99),
            emit: 0,
            epoch,
            sequence,
        };
        let key = |sequence| keyer().derive(&facts(sequence), &[]).expect("it needs no field").event;
        (0..5).map(key).collect::<Vec<_>>()
    };
    for cut in [0, 1, 4] {
        assert_eq!(found(Epoch(1), cut), counted(Epoch(1)), "cut at {cut}");
    }
    assert_eq!(found(Epoch(2), 0), counted(Epoch(2)));
}
