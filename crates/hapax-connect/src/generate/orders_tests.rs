use std::collections::BTreeMap;

use super::*;

fn mixed() -> GenerateConfig {
    GenerateConfig {
        seed: 7,
        keys: 50,
        updates_per_mille: 300,
        deletes_per_mille: 100,
        poison_per_mille: 40,
        ..GenerateConfig::default()
    }
}

fn event(config: &GenerateConfig, index: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_event(config, index, &mut bytes);
    bytes
}

fn parsed(config: &GenerateConfig, index: u64) -> serde_json::Value {
    serde_json::from_slice(&event(config, index)).expect("an event that is no poison is JSON")
}

/// Goal: nobody changes the recipe without noticing. Method: whole events, byte by byte.
#[test]
fn the_events_of_a_seed_never_change() {
    let plain = GenerateConfig { seed: 42, ..GenerateConfig::default() };
    assert_eq!(
        String::from_utf8(event(&plain, 0)).expect("text"),
        r#"{"order_id":0,"customer":"customer-194","amount_cents":88280,"currency":"EUR","status":"new","version":1,"op":"c","created_at":"2026-01-01T00:00:00Z"}"#
    );
    assert_eq!(
        String::from_utf8(event(&mixed(), 86_400 * 59)).expect("text"),
        r#"{"order_id":5097600,"customer":"customer-0","amount_cents":31161,"currency":"EUR","status":"new","version":5097601,"op":"c","created_at":"2026-03-01T00:00:00Z"}"#
    );
}

/// Goal: an outsider can count what was lost or doubled. Method: without updates, event n is order n.
#[test]
fn without_updates_every_event_is_an_order_of_its_own() {
    let config = GenerateConfig { seed: 3, ..GenerateConfig::default() };
    for index in [0, 1, 2, 999, 1_000_000, u64::MAX] {
        let order = parsed(&config, index);
        assert_eq!(order["order_id"], index);
        assert_eq!(order["op"], "c");
        assert_eq!(order["version"], index.saturating_add(1));
    }
}

/// Goal: the shares are what was asked for, and updates and deletes are about orders that exist. Method: 20,000
/// events, replayed into a map.
#[test]
fn updates_and_deletes_are_about_earlier_orders() {
    let config = mixed();
    let (mut created, mut counts) = (std::collections::BTreeSet::new(), BTreeMap::new());
    for index in 0..20_000 {
        let kind = kind(&config, index);
        let name = match kind {
            Kind::Create => "create",
            Kind::Update => "update",
            Kind::Delete => "delete",
            Kind::Poison(_) => "poison",
        };
        *counts.entry(name).or_insert(0_i32) += 1;
        let id = order_id(&config, index, kind);
        if kind == Kind::Create {
            assert!(created.insert(id), "order {id} was created twice");
        } else if matches!(kind, Kind::Update | Kind::Delete) {
            assert!(created.contains(&id), "event {index} is about order {id}, which is not there");
            assert!(index - id < 50 + 100, "event {index} reaches back to {id}");
            let order = parsed(&config, index);
            assert_eq!(order["op"], if kind == Kind::Update { "u" } else { "d" });
            assert_eq!(order["version"], index + 1);
        }
    }
    for (name, expected) in [("update", 6000), ("delete", 2000), ("poison", 800), ("create", 11_200)] {
        let found = counts[name];
        assert!((found - expected).abs() < 400, "{name}: {found}, expected about {expected}");
    }
}

/// Goal: each kind of poison is bad in its own way only. Method: look for all four and parse them.
#[test]
fn poison_comes_in_four_kinds() {
    let config = GenerateConfig { poison_per_mille: 1000, ..GenerateConfig::default() };
    let mut seen = [0; 4];
    for index in 0..200 {
        let bytes = event(&config, index);
        let Kind::Poison(poison) = kind(&config, index) else { panic!("event {index} is not poisoned") };
        let value = serde_json::from_slice::<serde_json::Value>(&bytes);
        match poison {
            Poison::CutOff => assert!(std::str::from_utf8(&bytes).is_ok() && value.is_err()),
            Poison::InvalidUtf8 => assert!(std::str::from_utf8(&bytes).is_err()),
            Poison::AmountAsText => assert!(value.expect("JSON")["amount_cents"].is_string()),
            Poison::NullOrderId => assert!(value.expect("JSON")["order_id"].is_null()),
        }
        seen[poison as usize] += 1;
    }
    assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
}

/// Goal: nothing but orders to update ends too. Method: ask for updates only, far from the beginning.
#[test]
fn a_stream_of_updates_only_falls_back_to_order_zero() {
    let config = GenerateConfig { updates_per_mille: 1000, ..GenerateConfig::default() };
    assert_eq!(parsed(&config, 0)["op"], "c");
    for index in [1, 2, 1_000_000] {
        assert_eq!(parsed(&config, index)["order_id"], 0);
    }
}

/// Goal: times are real dates. Method: leap days, year ends, and the turn after a hundred years.
#[test]
fn times_count_seconds_from_the_first_of_january() {
    for (index, expected) in [
        (0, "2026-01-01T00:00:00Z"),
        (86_399, "2026-01-01T23:59:59Z"),
        (86_400 * 59, "2026-03-01T00:00:00Z"),
        (86_400 * 365, "2027-01-01T00:00:00Z"),
        (86_400 * (365 + 365 + 59), "2028-02-29T00:00:00Z"),
        (86_400 * 36_524, "2026-01-01T00:00:00Z"),
    ] {
        let mut text = Vec::new();
        write_time(&mut text, index);
        assert_eq!(String::from_utf8(text).expect("text"), expected);
    }
}
