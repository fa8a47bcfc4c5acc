use std::collections::HashSet;

use hapax_model::delivery::{ConditionName, Delivery, Guarantee, Mechanism};

use super::*;
use crate::config::build::build_delivery;
use crate::config::merge::{default_delivery, default_of};
use crate::config::problem::Place;

/// Goal: the table is sound. Method: every name once, every default is a value of its kind, every doc is a sentence.
#[test]
fn every_default_is_a_value_of_its_kind() {
    let all = tables(&ROOT);
    let names: HashSet<_> = all.iter().map(|table| table.name).collect();
    assert_eq!(names.len(), all.len());
    assert!(all.len() > 10);
    for table in all {
        let fields: HashSet<_> = table.fields.iter().map(|field| field.name).collect();
        assert_eq!(fields.len(), table.fields.len(), "{}", table.name);
        assert!(table.exactly_one_of.iter().all(|name| fields.contains(name)), "{}", table.name);
        assert!(table.doc.ends_with('.'), "{}", table.name);
        for field in table.fields {
            assert!(field.doc.ends_with('.'), "{}.{}", table.name, field.name);
            let default = default_of(field, &Place::whole(""));
            assert_eq!(default.is_some(), field.preset.yaml().is_some(), "{}.{}", table.name, field.name);
        }
    }
}

/// Goal: a text's example is right by its own rule, so that a cure never misleads. Method: all rules.
#[test]
fn every_example_would_be_accepted() {
    for field in tables(&ROOT).iter().flat_map(|table| table.fields) {
        let kind = if let Kind::List { of, .. } | Kind::Map { of, .. } = field.kind { of } else { &field.kind };
        if let Kind::Text(rule) = kind {
            let example = rule.example.trim_matches(['"', '\'']);
            let example = if rule.example.starts_with('\'') { ".op == \"d\"" } else { example };
            assert_eq!((rule.check)(example), Ok(()), "{}", field.name);
        }
    }
}

/// Goal: the table's defaults are those of the delivery block's own type. Method: build one from defaults alone.
#[test]
fn the_defaults_of_delivery_are_those_of_the_model() {
    assert_eq!(Delivery::from(build_delivery(&default_delivery())), Delivery::default());
}

/// Goal: the table knows the names that the model knows. Method: compare the lists.
#[test]
fn the_names_are_those_of_the_model() {
    let listed = |field: &str| match DELIVERY.field(field).map(|field| field.kind) {
        Some(Kind::Choice(choices)) => choices.iter().map(|choice| choice.name).collect::<Vec<_>>(),
        Some(Kind::List { of: Kind::Choice(choices), .. }) => choices.iter().map(|choice| choice.name).collect(),
        Some(_) | None => Vec::new(),
    };
    assert_eq!(listed("guarantee"), Guarantee::ALL.map(Guarantee::name));
    assert_eq!(listed("mechanism"), Mechanism::ALL.map(Mechanism::name));
    assert_eq!(listed("conditions"), ConditionName::ALL.map(ConditionName::name));
}
