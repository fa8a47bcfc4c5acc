//! The same frames to both brokers: every answer is equal, field by field, but for what is agreed.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use hapax_broker::api::ROUTES;
use hapax_conform::target::Target;
use hapax_conform::wire::{AGREED, Agreed, Difference, Entry, ON_POSTGRES, Script, compare, play};

async fn played(target: &Target) -> Result<(Vec<Entry>, BTreeSet<(i16, i16)>)> {
    let mut script = Script::open(target.address).await?;
    play(&mut script).await.with_context(|| format!("{} broke down", target.name))?;
    let asked = script.asked.clone();
    Ok((script.into_entries(), asked))
}

/// Goal: our answers are Kafka's. Method: one script of all APIs and versions with errors, on all three; compare all fields.
#[test]
fn every_answer_is_the_same_but_for_what_is_agreed() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let play = |target: Result<Target>| runtime.block_on(played(&target.expect("it starts"))).expect("it answers");
    let (kafka, _) = play(Target::kafka());
    let (embedded, asked) = play(Target::ours());
    let (postgres, _) = play(Target::ours_on_postgres());
    let (differences, used) = compare(&kafka, &embedded, AGREED);
    check("embedded", &differences);
    let on_postgres: Vec<Agreed> = AGREED.iter().chain(ON_POSTGRES).copied().collect();
    let (differences, used_on_postgres) = compare(&kafka, &postgres, &on_postgres);
    check("PostgreSQL", &differences);
    for (at, rule) in on_postgres.iter().enumerate() {
        let is_used = used.contains(&at) || used_on_postgres.contains(&at);
        assert!(is_used, "this agreement is not needed any more: {rule:?}");
    }
    let served = ROUTES.iter().flat_map(|route| (route.min..=route.max).map(|version| (route.key as i16, version)));
    let silent: Vec<_> = served.filter(|pair| !asked.contains(pair)).collect();
    assert!(silent.is_empty(), "served but never asked (API, version): {silent:?}");
}

fn check(store: &str, differences: &[Difference]) {
    let lines: Vec<String> = differences.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{store}: {} differences:\n{}", lines.len(), lines.join("\n"));
}
