//! What `hapax test` runs.

use super::rules_of_text::{ANY_TEXT, CODE, ID, KEY};
use super::{EventForm, Field, Kind, Table};

pub(super) static TEST: Table = Table {
    name: "test",
    doc: "Inputs of a workflow, and what must become of them, exactly; see [testing](../concepts/testing.md).",
    fields: &[
        Field::new("name", Kind::Text(&ANY_TEXT), "What is tested, in a few words. Without it tests are numbered."),
        Field::new("workflow", Kind::Text(&ID), "The workflow that is run.").required(),
        Field::new("sink", Kind::Text(&ID), "The sink whose events are compared. Without it every sink's are."),
        Field::new(
            "input",
            Kind::List { of: &INPUT, fewest: 1, most: MOST_EVENTS },
            "What the source reads, in order: the fields of an event, which become a line of JSON, or a text, whose lines \
             are inputs as they stand.",
        )
        .required(),
        Field::new(
            "expect",
            Kind::List { of: &EVENT, fewest: 0, most: MOST_EVENTS },
            "The events that reach the sink, in order and complete: a field that is missing here must be missing there, \
             which is not the same as `null`. Numbers are compared by their value.",
        )
        .or("[]"),
        Field::new(
            "deletes",
            Kind::List { of: &EVENT, fewest: 0, most: MOST_EVENTS },
            "The events that ask for a row to be removed (`deleteWhen`), in order; only the fields that are written here are \
             compared.",
        )
        .or("[]"),
        Field::new(
            "rejects",
            Kind::List { of: &REJECT, fewest: 0, most: MOST_EVENTS },
            "The inputs that become dead letters, in order.",
        )
        .or("[]"),
        Field::new(
            "keys",
            Kind::List { of: &ONE_KEY, fewest: 1, most: MOST_EVENTS },
            "The keys of the events, deletes among them, in the order of the inputs: of the thing where the sink writes by \
             it, else of the event. `hapax test --print` shows them.",
        ),
    ],
    exactly_one_of: &[],
};

const MOST_EVENTS: usize = 10_000;
static INPUT: Kind = Kind::Event(EventForm::FieldsOrText);
static EVENT: Kind = Kind::Event(EventForm::Fields);
static ONE_KEY: Kind = Kind::Text(&KEY);
static REJECT: Kind = Kind::Object(&REJECTED);

static REJECTED: Table = Table {
    name: "test.rejects[]",
    doc: "A dead letter, by as much of it as is written.",
    fields: &[
        Field::new("code", Kind::Text(&CODE), "Its code."),
        Field::new("says", Kind::Text(&ANY_TEXT), "Words that its message must hold."),
        Field::new("input", Kind::Integer { least: 1, most: 10_000 }, "Which input it is, counted from 1."),
    ],
    exactly_one_of: &[],
};
