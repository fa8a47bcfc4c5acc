//! The same frames to both brokers: every answer is equal, field by field, but for what is agreed.

use std::sync::OnceLock;

use anyhow::Result;
use hapax_broker::api::ROUTES;
use hapax_conform::target::Target;
use hapax_conform::wire::{AGREED, Agreed, Difference, ON_POSTGRES, Played, compare, play};

/// The three plays; each is made once, and all tests look at it.
fn plays() -> &'static [Played; 3] {
    static PLAYS: OnceLock<[Played; 3]> = OnceLock::new();
    PLAYS.get_or_init(|| {
        let played = |target: Result<Target>| play(&mut target.expect("it starts")).expect("it answers");
        [played(Target::kafka()), played(Target::ours()), played(Target::ours_on_postgres())]
    })
}

/// Goal: our answers are Kafka's. Method: one script of all APIs and versions with errors, on all three; compare all fields.
#[test]
fn every_answer_is_the_same_but_for_what_is_agreed() {
    let [kafka, embedded, postgres] = plays();
    let (differences, used) = compare(&kafka.entries, &embedded.entries, AGREED);
    check("embedded", &differences);
    let on_postgres: Vec<Agreed> = AGREED.iter().chain(ON_POSTGRES).copied().collect();
    let (differences, used_on_postgres) = compare(&kafka.entries, &postgres.entries, &on_postgres);
    check("PostgreSQL", &differences);
    for (at, rule) in on_postgres.iter().enumerate() {
        let is_used = used.contains(&at) || used_on_postgres.contains(&at);
        assert!(is_used, "this agreement is not needed any more: {rule:?}");
    }
}

fn check(store: &str, differences: &[Difference]) {
    let lines: Vec<String> = differences.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{store}: {} differences:\n{}", lines.len(), lines.join("\n"));
}

/// Goal: no version is forgotten by the scenes. Method: what the router serves against what was asked, on all three.
#[test]
fn every_served_version_was_asked() {
    for played in plays() {
        let served = ROUTES.iter().flat_map(|route| (route.min..=route.max).map(|version| (route.key as i16, version)));
        let silent: Vec<_> = served.filter(|pair| !played.asked.contains(pair)).collect();
        assert!(silent.is_empty(), "served but never asked (API, version): {silent:?}");
    }
}

/// Goal: we promise nothing that Kafka 4.3.1 does not know. Method: the two lists of ApiVersions, as they came over the wire.
#[test]
fn every_advertised_version_is_one_that_kafka_advertises() {
    let [kafka, embedded, postgres] = plays();
    assert_eq!(embedded.advertised, postgres.advertised);
    for (api, (min, max)) in &embedded.advertised {
        let (oldest, newest) =
            kafka.advertised.get(api).unwrap_or_else(|| panic!("API {api} is not one of Kafka 4.3.1's"));
        assert!(oldest <= min && max <= newest, "API {api}: ours {min} to {max}, Kafka's {oldest} to {newest}");
    }
    let routes: Vec<_> = ROUTES.iter().map(|route| (route.key as i16, (route.advertised_min, route.max))).collect();
    assert!(embedded.advertised.iter().map(|(api, range)| (*api, *range)).eq(routes), "the list is not the router's");
}

/// Goal: what is agreed is also written. Method: every rule names words of the page that lists the differences.
#[test]
fn every_agreement_is_explained() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/PROTOCOL_DEVIATIONS.md");
    let page = std::fs::read_to_string(path).expect("the page is there");
    for rule in AGREED.iter().chain(ON_POSTGRES) {
        assert!(!rule.page.is_empty() && page.contains(rule.page), "the page does not say it: {rule:?}");
    }
}
