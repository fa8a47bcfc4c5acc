//! The same frames to both brokers: every answer is equal, field by field, but for what is agreed.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use hapax_broker::api::ROUTES;
use hapax_conform::target::Target;
use hapax_conform::wire::{AGREED, Entry, Script, compare, play};

async fn played(target: &Target) -> Result<(Vec<Entry>, BTreeSet<(i16, i16)>)> {
    let mut script = Script::open(target.address).await?;
    play(&mut script).await.with_context(|| format!("{} broke down", target.name))?;
    let asked = script.asked.clone();
    Ok((script.into_entries(), asked))
}

/// Goal: our answers are Kafka's. Method: one script of all APIs and versions with errors, on both; compare all fields.
#[test]
fn every_answer_is_the_same_but_for_what_is_agreed() {
    let (kafka, ours) = (Target::kafka().expect("Apache Kafka"), Target::ours().expect("ours"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (theirs, _) = runtime.block_on(played(&kafka)).expect("Apache Kafka answers");
    let (mine, asked) = runtime.block_on(played(&ours)).expect("ours answers");
    let (differences, used) = compare(&theirs, &mine, AGREED);
    let lines: Vec<String> = differences.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{} differences:\n{}", lines.len(), lines.join("\n"));
    for (at, rule) in AGREED.iter().enumerate() {
        assert!(used.contains(&at), "this agreement is not needed any more: {rule:?}");
    }
    let served = ROUTES.iter().flat_map(|route| (route.min..=route.max).map(|version| (route.key as i16, version)));
    let silent: Vec<_> = served.filter(|pair| !asked.contains(pair)).collect();
    assert!(silent.is_empty(), "served but never asked (API, version): {silent:?}");
}
