//! The published vectors, recomputed: whoever writes keys in another language relies on them.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::*;
use crate::epoch::Epoch;
use crate::field::{FieldPath, FieldValue};
use crate::position::{Incarnation, Position};

#[derive(Deserialize)]
struct Published {
    encoding: String,
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    about: String,
    strategy: String,
    key: String,
    unique: bool,
    values: Vec<Typed>,
    facts: Facts,
    name: Option<String>,
    canonical: String,
    text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Typed {
    Text(String),
    Number(String),
    Bool(bool),
    Bytes(String),
}

#[derive(Deserialize)]
struct Facts {
    source: String,
    lane: String,
    incarnation: String,
    offset: u64,
    index: u32,
    emit: u32,
    epoch: u64,
    sequence: u64,
}

fn published() -> Published {
    serde_json::from_str(include_str!("../../../../docs/formats/key-vectors.json")).unwrap()
}

/// A strategy of that name, over as many fields as the vector has values.
fn strategy_of(vector: &Vector) -> DedupStrategy {
    let mut fields = (0..vector.values.len()).map(|n| FieldPath::of_name(&format!("f{n}"))).collect::<Vec<_>>();
    match vector.strategy.as_str() {
        "content-fields" => DedupStrategy::content_fields(fields),
        "content-fields-epoch" => DedupStrategy::content_fields_with_epoch(fields),
        "composite" => DedupStrategy::composite(fields),
        "epoch-sequence" => DedupStrategy::EpochSequence,
        "source-offset" => DedupStrategy::SourceOffset,
        named @ ("change-key" | "change-key-without-schema") => {
            let (version, database) = (fields.pop().unwrap(), fields.remove(0));
            let schema = (named == "change-key").then(|| fields.remove(0));
            DedupStrategy::ChangeKey { database, schema, table: fields.remove(0), primary_key: fields, version }
        }
        "derived" => {
            let window = fields.pop().unwrap();
            DedupStrategy::Derived { contributors: Contributors::Fields(fields), window }
        }
        "window-sequence" => DedupStrategy::WindowSequence { window: fields.remove(0), sequence: fields.remove(0) },
        "custom" => DedupStrategy::Custom { name: vector.name.clone().unwrap() },
        other => panic!("no strategy {other}"),
    }
}

/// What the vector's inputs give: canonical bytes in hex, and the key's text.
fn recompute(vector: &Vector) -> (String, String) {
    let strategy = strategy_of(vector);
    assert_eq!(strategy.name(), vector.strategy);
    let unique = if vector.unique { Uniqueness::FieldsAlone } else { Uniqueness::WithVersion };
    let mut keyer = Keyer::new(strategy, unique, KeyNeed::EntityAndEvent);
    let mut values = Vec::new();
    for typed in &vector.values {
        match typed {
            Typed::Text(text) => values.push(FieldValue::Text(text)),
            Typed::Number(number) => values.push(FieldValue::Number(number)),
            Typed::Bool(value) => values.push(FieldValue::Bool(*value)),
            Typed::Bytes(hex) => {
                let bytes = data_encoding::HEXLOWER.decode(hex.as_bytes()).unwrap();
                let functions = CustomKeys::default();
                let name = vector.name.as_deref().unwrap();
                keyer = keyer.with_custom(&functions.with(name, Vec::new(), move |_, _| Ok(bytes.clone())));
            }
        }
    }
    let incarnation = Incarnation::new(1, &vector.facts.incarnation);
    let facts = KeyFacts {
        source: &vector.facts.source,
        lane: &vector.facts.lane,
        incarnation: &incarnation,
        position: Position { offset: vector.facts.offset, index: vector.facts.index },
        emit: vector.facts.emit,
        epoch: Epoch(vector.facts.epoch),
        sequence: vector.facts.sequence,
    };
    let keys = keyer.derive(&facts, &values).unwrap();
    let mut tuple = encoding::Tuple::new();
    let key = match vector.key.as_str() {
        "entity" => keyer.write_entity(&mut tuple, &facts, &values).map(|()| keys.entity),
        "event" => keyer.write_event(&mut tuple, &facts, &values).map(|()| keys.event),
        other => panic!("no key {other}"),
    };
    (data_encoding::HEXLOWER.encode(tuple.as_bytes()), key.unwrap().unwrap().text().to_string())
}

/// Goal: the encoding never changes by accident. Method: recompute every published vector.
#[test]
fn every_published_vector_is_what_we_compute() {
    let published = published();
    assert_eq!(published.encoding, ENCODING);
    assert!(published.vectors.len() >= 25);
    for vector in &published.vectors {
        assert_eq!(recompute(vector), (vector.canonical.clone(), vector.text.clone()), "{}", vector.about);
    }
}

/// Goal: keys tell apart what differs and nothing else. Method: as many keys as canonical bytes among the vectors.
#[test]
fn vectors_share_a_key_exactly_if_they_share_their_bytes() {
    let vectors = published().vectors;
    let bytes: BTreeSet<_> = vectors.iter().map(|vector| &vector.canonical).collect();
    let texts: BTreeSet<_> = vectors.iter().map(|vector| &vector.text).collect();
    assert_eq!(bytes.len(), texts.len());
    let find = |about: &str| &vectors.iter().find(|vector| vector.about == about).unwrap().text;
    assert_ne!(find("a separator in the first field"), find("the same characters, cut elsewhere"));
    assert_eq!(find("the number one, spelled 1"), find("the number one, spelled 10e-1"));
    assert_eq!(find("made from two events in a window"), find("the same two, arrived in the other order"));
}
