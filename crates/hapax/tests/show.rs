//! `hapax config`, `completions`, `--version`, `--help`.

use crate::world::World;

/// Goal: the configuration is shown with its defaults, and what came from a variable is hidden.
#[test]
fn the_configuration_is_shown_without_its_secrets() {
    let world = World::shop("", "guarantee: exactly-once");
    let secret = world.read("hapax.yaml").replace("path: shop.db", "path: \"${SHOP}\"");
    world.write("hapax.yaml", secret);
    let answer = world.hapax_with(&["config", "show"], &[("SHOP", "very-secret.db")]);
    answer.exits(0).says(&["guarantee: exactly-once", "maxRejects: 10%", "***"]).keeps_silent_about(&["very-secret"]);
    let json = world.hapax_with(&["config", "show", "--json"], &[("SHOP", "very-secret.db")]);
    json.exits(0).keeps_silent_about(&["very-secret"]);
    assert_eq!(json.json()["workflows"][0]["delivery"]["guarantee"], "exactly-once", "{json}");
}

/// Goal: what is shown is a configuration again. Method: show, write, show.
#[test]
fn what_is_shown_can_be_read_again() {
    let world = World::shop("", "guarantee: exactly-once, deduplication: { keyFields: [id] }");
    let shown = world.hapax(&["config", "show"]);
    world.write("hapax.yaml", &shown.exits(0).out);
    assert_eq!(world.hapax(&["config", "show"]).exits(0).out, shown.out);
}

/// Goal: the schema is JSON and knows the fields; it needs no configuration.
#[test]
fn the_schema_is_json_and_needs_no_configuration() {
    let schema = World::empty().hapax(&["config", "schema"]).exits(0).json();
    assert!(schema["$defs"]["configuration"]["properties"]["workflows"].is_object(), "{schema:#}");
    assert!(schema["$schema"].is_string());
}

/// Goal: completions, version and help work anywhere.
#[test]
fn completions_version_and_help_work_anywhere() {
    let world = World::empty();
    world.hapax(&["completions", "bash"]).exits(0).says(&["_hapax", "complete", "take-over"]);
    world.hapax(&["--version"]).exits(0).says(&[concat!("hapax ", env!("CARGO_PKG_VERSION"))]);
    world.hapax(&["--help"]).exits(0).says(&["Start with `hapax demo`", "Exit codes: 0 done, 1 failed"]);
    world.hapax(&[]).exits(2).says(&["Usage"]);
}

/// Goal: a reader who goes away early, such as `head`, is no failure. Method: close the pipe before anything is written.
#[test]
fn a_reader_who_goes_away_is_no_failure() {
    let world = World::shop("", "guarantee: exactly-once");
    for command in [&["config", "schema"][..], &["completions", "bash"], &["setup", "--sql"], &["check"]] {
        let (code, err) = world.hapax_unread(command);
        assert_eq!((code, err.as_str()), (Some(0), ""), "{command:?}");
    }
}
