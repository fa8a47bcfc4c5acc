use super::*;
use crate::key::{DedupKeyComponents, NamedValue};

fn path(text: &str) -> FieldPath {
    text.parse().unwrap()
}

fn order_fields() -> Vec<FieldPath> {
    vec![path(".order_id"), path(".region")]
}

const ORDER: [FieldValue<'static>; 2] = [FieldValue::Number("42"), FieldValue::Text("eu")];

fn incarnation() -> Incarnation {
    Incarnation::new(1, "inode 7")
}

fn facts(incarnation: &Incarnation) -> KeyFacts<'_> {
    KeyFacts {
        source: "file:orders",
        lane: "orders.jsonl",
        incarnation,
        position: Position::at(1024),
        emit: 0,
        epoch: Epoch(5),
        sequence: 3,
    }
}

fn with_version(strategy: DedupStrategy) -> Keyer {
    Keyer::new(strategy, Uniqueness::WithVersion, KeyNeed::EntityAndEvent)
}

fn content() -> Keyer {
    with_version(DedupStrategy::content_fields(order_fields()))
}

fn every_strategy() -> Vec<DedupStrategy> {
    vec![
        DedupStrategy::content_fields(order_fields()),
        DedupStrategy::content_fields_with_epoch(order_fields()),
        DedupStrategy::composite(order_fields()),
        DedupStrategy::EpochSequence,
        DedupStrategy::SourceOffset,
        change_key(Some(path("schema"))),
        change_key(None),
        DedupStrategy::Derived { contributors: Contributors::Fields(order_fields()), window: path("window") },
        DedupStrategy::Derived { contributors: Contributors::Array(path("parents")), window: path("window") },
        DedupStrategy::WindowSequence { window: path("window"), sequence: path("sequence") },
        DedupStrategy::Custom { name: "by-region".to_owned() },
    ]
}

fn change_key(schema: Option<FieldPath>) -> DedupStrategy {
    DedupStrategy::ChangeKey {
        database: path("database"),
        schema,
        table: path("table"),
        primary_key: vec![path("id")],
        version: path("version"),
    }
}

/// A keyer with a custom function, which only the custom strategy uses.
fn any_keyer(strategy: DedupStrategy) -> Keyer {
    let functions = CustomKeys::default().with("by-region", vec![path(".region")], |_, values| match values {
        [FieldValue::Text(region)] => Ok(region.as_bytes().to_vec()),
        other => Err(format!("no region in {other:?}")),
    });
    with_version(strategy).with_custom(&functions)
}

/// Goal: same event and epoch, same keys, and no two strategies share one. Method: every strategy twice, afresh.
#[test]
fn keys_are_deterministic_and_no_two_strategies_share_one() {
    let incarnation = incarnation();
    let mut all = std::collections::BTreeSet::new();
    let (mut keys_made, mut arrays) = (0, 0);
    for strategy in every_strategy() {
        let keyer = any_keyer(strategy.clone());
        let values = vec![FieldValue::Text("x"); keyer.fields().len()];
        let keys = keyer.derive(&facts(&incarnation), &values).unwrap();
        assert_eq!(any_keyer(strategy.clone()).derive(&facts(&incarnation), &values), Ok(keys), "{strategy:?}");
        assert_eq!(keys.entity.is_none(), matches!(strategy.name(), "epoch-sequence" | "source-offset"));
        arrays += usize::from(matches!(&strategy, DedupStrategy::Derived { contributors: Contributors::Array(_), .. }));
        for key in keys.entity.into_iter().chain(keys.event) {
            keys_made += 1;
            all.insert(key);
        }
    }
    assert_eq!((all.len(), keys_made, arrays), (keys_made, 20, 1));
}

/// Goal: different events have different keys. Method: change each value.
#[test]
fn different_events_have_different_keys() {
    let incarnation = incarnation();
    let key = |values: &[FieldValue<'_>]| content().derive(&facts(&incarnation), values).unwrap();
    let other_id = key(&[FieldValue::Number("43"), FieldValue::Text("eu")]);
    let other_kind = key(&[FieldValue::Text("42"), FieldValue::Text("eu")]);
    for other in [other_id, other_kind] {
        assert_ne!(key(&ORDER).entity, other.entity);
        assert_ne!(key(&ORDER).event, other.event);
    }
    assert_eq!(key(&ORDER), key(&[FieldValue::Number("42.0"), FieldValue::Text("eu")]));
}

/// Goal: what is part of the version changes the event key, never the entity key. Method: change one fact at a time.
#[test]
fn an_event_key_follows_the_position_and_an_entity_key_does_not() {
    let (first, second) = (incarnation(), Incarnation::new(2, "inode 8"));
    let keyer = content();
    let base = keyer.derive(&facts(&first), &ORDER).unwrap();
    let moved = [
        KeyFacts { source: "file:other", ..facts(&first) },
        KeyFacts { lane: "more.jsonl", ..facts(&first) },
        KeyFacts { incarnation: &second, ..facts(&first) },
        KeyFacts { position: Position::at(1025), ..facts(&first) },
        KeyFacts { position: Position { offset: 1024, index: 1 }, ..facts(&first) },
        KeyFacts { emit: 1, ..facts(&first) },
    ];
    for facts in moved {
        let keys = keyer.derive(&facts, &ORDER).unwrap();
        assert_eq!(keys.entity, base.entity);
        assert_ne!(keys.event, base.event, "{facts:?}");
    }
    let renumbered = Incarnation::new(9, "inode 7");
    let same = KeyFacts { epoch: Epoch(6), sequence: 9, incarnation: &renumbered, ..facts(&first) };
    assert_eq!(keyer.derive(&same, &ORDER), Ok(base), "neither epoch nor the count of incarnations is in the key");
}

/// Goal: a keyer's cached origin never leaks into another lane's keys. Method: compare with a keyer that saw only one.
#[test]
fn a_key_does_not_depend_on_what_was_derived_before() {
    let (first, second) = (incarnation(), Incarnation::new(2, "inode 8"));
    let used = content();
    used.derive(&facts(&first), &ORDER).unwrap();
    let rotated = facts(&second);
    assert_eq!(used.derive(&rotated, &ORDER), content().derive(&rotated, &ORDER));
}

/// Goal: `unique: true` takes the position out of the event key. Method: two positions.
#[test]
fn fields_that_name_the_event_need_no_version() {
    let incarnation = incarnation();
    let keyer =
        Keyer::new(DedupStrategy::content_fields(order_fields()), Uniqueness::FieldsAlone, KeyNeed::EntityAndEvent);
    let keys = keyer.derive(&facts(&incarnation), &ORDER).unwrap();
    let later = KeyFacts { position: Position::at(9), ..facts(&incarnation) };
    assert_eq!(keyer.derive(&later, &ORDER), Ok(keys));
    assert_ne!(keys.entity, keys.event);
}

/// Goal: a key with epoch changes from epoch to epoch and from lane to lane. Method: change either.
#[test]
fn a_key_with_epoch_exists_once_per_epoch() {
    let incarnation = incarnation();
    for strategy in every_strategy().into_iter().filter(DedupStrategy::contains_epoch) {
        let keyer = with_version(strategy);
        let values = &ORDER[..keyer.fields().len()];
        let base = keyer.derive(&facts(&incarnation), values).unwrap();
        let next = KeyFacts { epoch: Epoch(6), ..facts(&incarnation) };
        let elsewhere = KeyFacts { lane: "more.jsonl", ..facts(&incarnation) };
        let moved = KeyFacts { position: Position::at(9), ..facts(&incarnation) };
        assert_ne!(keyer.derive(&next, values).unwrap().event, base.event);
        assert_eq!(keyer.derive(&next, values).unwrap().entity, base.entity);
        assert_ne!(keyer.derive(&elsewhere, values).unwrap().event, base.event);
        assert_eq!(keyer.derive(&moved, values), Ok(base));
    }
}

/// Goal: a key without epoch is the same in every epoch. Method: every such strategy, the epoch and the number in it changed.
#[test]
fn a_key_without_epoch_is_the_same_in_every_epoch() {
    let incarnation = incarnation();
    let mut seen = 0;
    for strategy in every_strategy().into_iter().filter(|strategy| !strategy.contains_epoch()) {
        let keyer = any_keyer(strategy.clone());
        let values = vec![FieldValue::Text("x"); keyer.fields().len()];
        let base = keyer.derive(&facts(&incarnation), &values).unwrap();
        let later = KeyFacts { epoch: Epoch(6), sequence: 9, ..facts(&incarnation) };
        assert_eq!(keyer.derive(&later, &values), Ok(base), "{strategy:?}");
        seen += 1;
    }
    assert!(seen > 5, "{seen}");
}

/// Goal: an event without a key is named by its epoch and its number in it, and by nothing else. Method: no fields; the
/// number, the epoch, the lane and the position changed one by one.
#[test]
fn an_event_without_a_key_is_named_by_epoch_and_number() {
    let incarnation = incarnation();
    let keyer = with_version(DedupStrategy::EpochSequence);
    assert!(keyer.fields().is_empty());
    let base = facts(&incarnation);
    let key = |facts: &KeyFacts<'_>| keyer.derive(facts, &[]).unwrap().event;
    assert_eq!(key(&base), key(&base), "the same again");
    assert_ne!(key(&base), key(&KeyFacts { sequence: base.sequence + 1, ..base }));
    assert_ne!(key(&base), key(&KeyFacts { epoch: Epoch(base.epoch.0 + 1), ..base }));
    assert_ne!(key(&base), key(&KeyFacts { lane: "more.jsonl", ..base }));
    assert_eq!(key(&base), key(&KeyFacts { position: Position::at(9), ..base }), "where it was read does not matter");
}

/// Goal: each change of a row has its own event key and one entity key. Method: two versions, and `unique: true`.
#[test]
fn each_change_of_a_row_has_its_own_key() {
    let incarnation = incarnation();
    let key = |version, unique| {
        let values = ["shop", "public", "orders", "7", version].map(FieldValue::Text);
        let keyer = Keyer::new(change_key(Some(path("schema"))), unique, KeyNeed::EntityAndEvent);
        keyer.derive(&facts(&incarnation), &values).unwrap()
    };
    let (first, second) = (key("1", Uniqueness::WithVersion), key("2", Uniqueness::WithVersion));
    assert_eq!(first.entity, second.entity);
    assert_ne!(first.event, second.event);
    assert_eq!(key("2", Uniqueness::FieldsAlone), second, "the version is one of the fields");
}

/// Goal: every column of a primary key is part of the key, and none runs into the next. Method: change each column alone,
/// and move a comma or a colon from one to the other.
#[test]
fn every_column_of_a_primary_key_is_in_the_key() {
    let incarnation = incarnation();
    let keyer = with_version(DedupStrategy::ChangeKey {
        database: path("database"),
        schema: None,
        table: path("table"),
        primary_key: vec![path("order_id"), path("line")],
        version: path("version"),
    });
    let key = |[order, line]: [&str; 2]| {
        let values = ["shop", "lines", order, line, "1"].map(FieldValue::Text);
        keyer.derive(&facts(&incarnation), &values).unwrap()
    };
    for (one, other) in
        [(["7", "1"], ["8", "1"]), (["7", "1"], ["7", "2"]), (["7,1", "2"], ["7", "1,2"]), (["7:1", "2"], ["7", "1:2"])]
    {
        assert_ne!(key(one).entity, key(other).entity, "{one:?} {other:?}");
        assert_ne!(key(one).event, key(other).event, "{one:?} {other:?}");
    }
}

/// Goal: a derived key depends on its inputs alone, in any order. Method: list and array, sorted and not.
#[test]
fn a_derived_key_does_not_depend_on_the_order_of_arrival() {
    let incarnation = incarnation();
    let window = FieldValue::Text("w");
    let array = with_version(DedupStrategy::Derived {
        contributors: Contributors::Array(path("parents")),
        window: path("window"),
    });
    let of_array = |json| array.derive(&facts(&incarnation), &[FieldValue::Json(json), window]);
    let list = with_version(DedupStrategy::Derived {
        contributors: Contributors::Fields(order_fields()),
        window: path("window"),
    });
    let of_list = list.derive(&facts(&incarnation), &[FieldValue::Text("é"), FieldValue::Number("1.0"), window]);
    assert_eq!(of_array(r#"["\u00e9", 1]"#), of_list);
    assert_eq!(of_array(r#"[1e0,"é"]"#), of_list);
    assert_ne!(of_array(r#"[1,"é",true]"#), of_list);
    let null = |missing| Err(KeyError::NullField { path: path("parents"), missing });
    assert_eq!(of_array("[]"), null(Missing::Empty));
    assert_eq!(of_array("[1, null]"), null(Missing::Null));
    for odd in ["{}", "[[1]]", "[{}]", "[1"] {
        assert_eq!(of_array(odd), Err(KeyError::NonScalar { path: path("parents") }), "{odd}");
    }
}

/// Goal: only what the sink uses is derived. Method: each need.
#[test]
fn only_the_keys_that_are_needed_are_derived() {
    let incarnation = incarnation();
    let both = content().derive(&facts(&incarnation), &ORDER).unwrap();
    let keyer = |need| Keyer::new(DedupStrategy::content_fields(order_fields()), Uniqueness::WithVersion, need);
    let derive = |need| keyer(need).derive(&facts(&incarnation), &ORDER).unwrap();
    assert_eq!(derive(KeyNeed::Nothing), Keys::default());
    assert_eq!(derive(KeyNeed::Fields), Keys::default());
    let nothing = [FieldValue::Null; ORDER.len()];
    assert!(keyer(KeyNeed::Nothing).derive(&facts(&incarnation), &nothing).is_ok());
    assert!(keyer(KeyNeed::Fields).derive(&facts(&incarnation), &nothing).is_err());
    assert_eq!(derive(KeyNeed::Entity), Keys { event: None, ..both });
    assert_eq!(derive(KeyNeed::Event), Keys { entity: None, ..both });
}

/// Goal: an event whose key cannot be told is refused with place and code, and its fingerprint holds none of its
/// values. Method: each kind of value that is no key.
#[test]
fn a_value_that_is_no_key_is_refused() {
    let incarnation = incarnation();
    let error = |value| content().derive(&facts(&incarnation), &[value, FieldValue::Text("eu")]).unwrap_err();
    let field = path(".order_id");
    let long = format!("1e{}", "9".repeat(90));
    let cases = [
        (error(FieldValue::Null), "HX2010", KeyError::NullField { path: field.clone(), missing: Missing::Null }),
        (error(FieldValue::Absent), "HX2010", KeyError::NullField { path: field.clone(), missing: Missing::Absent }),
        (error(FieldValue::Json("[1]")), "HX2011", KeyError::NonScalar { path: field.clone() }),
        (
            error(FieldValue::Number(&long)),
            "HX2012",
            KeyError::ExtremeNumber { path: field, number: format!("1e{}…", "9".repeat(38)) },
        ),
    ];
    for (found, code, expected) in cases {
        assert_eq!(found, expected);
        assert_eq!(found.cause().code, code);
        assert!(found.to_string().contains(".order_id") && found.fingerprint().contains(".order_id"));
        assert!(!found.fingerprint().contains("99"));
    }
}

/// Goal: a strategy that would give all events one key gives none. Method: no fields, no function, a refusal.
#[test]
fn a_strategy_without_what_it_needs_makes_no_key() {
    let incarnation = incarnation();
    let empty = with_version(DedupStrategy::content_fields(Vec::new()));
    let error = empty.derive(&facts(&incarnation), &[]).unwrap_err();
    assert_eq!((error.code(), error), ("HX2015", KeyError::NoFields { strategy: "content-fields" }));
    let custom = DedupStrategy::Custom { name: "by-region".to_owned() };
    let error = with_version(custom.clone()).derive(&facts(&incarnation), &[]).unwrap_err();
    assert_eq!((error.code(), error), ("HX2013", KeyError::NoFunction { name: "by-region".to_owned() }));
    let error = any_keyer(custom).derive(&facts(&incarnation), &[FieldValue::Null]).unwrap_err();
    assert_eq!(error.code(), "HX2014");
    assert!(error.to_string().contains("no region") && !error.fingerprint().contains("no region"));
}

/// Goal: the contract sees every change of how keys are made. Method: identities of all strategies differ.
#[test]
fn the_identity_names_encoding_strategy_fields_and_version() {
    assert_eq!(content().identity(), "h1 content-fields .order_id .region version position");
    let custom = any_keyer(DedupStrategy::Custom { name: "by-region".to_owned() });
    assert_eq!(custom.identity(), "h1 custom \"by-region\" .region version position");
    let unique = Keyer::new(content().strategy().clone(), Uniqueness::FieldsAlone, KeyNeed::Event);
    let mut all: std::collections::BTreeSet<_> =
        every_strategy().into_iter().map(|strategy| any_keyer(strategy).identity()).collect();
    all.insert(unique.identity());
    assert_eq!(all.len(), every_strategy().len() + 1);
}

/// Goal: an explained key is the derived key with its parts in sight. Method: entity, event, and a strategy of facts.
#[test]
fn an_explained_key_shows_its_components() {
    let incarnation = incarnation();
    let facts = facts(&incarnation);
    let values = [FieldValue::Number("42.0"), FieldValue::Text("eu")];
    let named = |path: &str, value: &str| NamedValue { path: path.to_owned(), value: value.to_owned() };
    let fields = vec![named(".order_id", "42"), named(".region", "eu")];

    let event = content().explain(&facts, &values).unwrap();
    assert_eq!(event.value, content().derive(&facts, &values).unwrap().event.unwrap().text().as_str());
    let lane = "orders.jsonl".to_owned();
    let at_offset = DedupKeyComponents::ContentAtOffset {
        fields: fields.clone(),
        lane: lane.clone(),
        position: facts.position,
        emit: 0,
    };
    assert_eq!(event.components, at_offset);

    let keyer = Keyer::new(content().strategy().clone(), Uniqueness::WithVersion, KeyNeed::Entity);
    let entity = keyer.explain(&facts, &values).unwrap();
    assert_eq!(entity.value, keyer.derive(&facts, &values).unwrap().entity.unwrap().text().as_str());
    assert_eq!(entity.components, DedupKeyComponents::ContentBased { fields: fields.clone() });

    let composite = with_version(DedupStrategy::composite(order_fields())).explain(&facts, &values).unwrap();
    assert_eq!(composite.components, DedupKeyComponents::Composite { natural_key: fields, epoch: Epoch(5) });
    let sequence = with_version(DedupStrategy::EpochSequence).explain(&facts, &[]).unwrap();
    assert_eq!(sequence.components, DedupKeyComponents::EpochBased { lane, epoch: Epoch(5), sequence: 3 });
    let keyer = Keyer::new(change_key(None), Uniqueness::WithVersion, KeyNeed::Entity);
    let change = keyer.explain(&facts, &["shop", "orders", "7", "1"].map(FieldValue::Text)).unwrap();
    let row = vec![named(".database", "shop"), named(".table", "orders"), named(".id", "7")];
    assert_eq!(change.components, DedupKeyComponents::Change { fields: row });
}

/// Goal: a key made of the position shows source, lane, incarnation, position and emit index. Method: facts that tell all
/// of them apart.
#[test]
fn an_explained_position_shows_its_parts() {
    let incarnation = incarnation();
    let position = Position { offset: 1024, index: 4 };
    let facts = KeyFacts { position, emit: 1, ..facts(&incarnation) };
    let keyer = with_version(DedupStrategy::SourceOffset);
    let key = keyer.explain(&facts, &[]).unwrap();
    assert_eq!(key.value, keyer.derive(&facts, &[]).unwrap().event.unwrap().text().as_str());
    let parts = DedupKeyComponents::SourceOffset {
        source_id: "file:orders".to_owned(),
        lane: "orders.jsonl".to_owned(),
        incarnation: "inode 7".to_owned(),
        position,
        emit: 1,
    };
    assert_eq!(key.components, parts);
}

/// Goal: which strategies contain the epoch, and which promise uniqueness, is as the audit needs it. Method: list them.
#[test]
fn each_strategy_says_what_it_contains_and_promises() {
    let names = |pick: fn(&DedupStrategy) -> bool| {
        every_strategy().iter().filter(|strategy| pick(strategy)).map(DedupStrategy::name).collect::<Vec<_>>()
    };
    assert_eq!(names(DedupStrategy::contains_epoch), ["content-fields-epoch", "composite", "epoch-sequence"]);
    let promising = names(DedupStrategy::promises_uniqueness);
    let expected = [
        "epoch-sequence",
        "source-offset",
        "change-key",
        "change-key-without-schema",
        "derived",
        "derived",
        "window-sequence",
    ];
    assert_eq!(promising, expected);
    assert!(content().promises_uniqueness(), "the position makes the promise");
    assert!(!with_version(DedupStrategy::composite(order_fields())).promises_uniqueness());
}
