//! Mistakes in the configuration: each is a line with place, code and cure, and nothing starts.

use crate::world::World;

/// A configuration whose third line holds the source and whose fourth the sink.
fn configured(source: &str, sink: &str, delivery: &str) -> World {
    let world = World::empty();
    let text = format!(
        "workflows:
  - id: orders
    source: {source}
    sink: {sink}
    delivery: {delivery}
"
    );
    world.write("hapax.yaml", text);
    world
}

const SOURCE: &str = "{ file: { path: orders.jsonl } }";
const SINK: &str = "{ sqlite: { path: shop.db, table: orders } }";

/// Goal: a misspelt field names its place and the nearest field. Method: two of them; both are told at once.
#[test]
fn an_unknown_field_is_answered_with_the_nearest_name() {
    let world = configured(SOURCE, "{ sqlite: { path: shop.db, tabel: orders } }", "{ guarante: exactly-once }");
    for command in [&["check"][..], &["run", "--once"]] {
        let answer = world.hapax(command);
        answer.exits(2).says(&["hapax.yaml:4:", "HX1010", "\"tabel\"", "did you mean table?"]);
        answer.says(&["hapax.yaml:5:", "\"guarante\"", "did you mean guarantee?"]);
    }
    assert!(!world.path("hapax-data").exists(), "nothing was started");
}

/// Goal: a value of the wrong type names its place and what to write. Method: a list, a number and a word.
#[test]
fn a_wrong_type_is_answered_with_what_to_write() {
    let delivery = "{ epoch: 3, maxRejects: lots, lease: [5s], onReject: maybe }";
    let answer = configured(SOURCE, SINK, delivery).hapax(&["check"]);
    answer.exits(2).says(&["hapax.yaml:5:", "HX1011", "workflows.delivery.lease", "is a list", "write a duration"]);
    answer.says(&["workflows.delivery.epoch", "HX1016", "\"lots\"", "write a share, such as 10%", "deadLetter, stop"]);
}

/// Goal: a variable without quotes inside braces is explained, and not read as YAML's own braces. Method: both spellings
/// of the issue, in the place of a source and of a sink.
#[test]
fn a_variable_without_quotes_inside_braces_is_explained() {
    let by_path = configured("{ file: { path: ${ORDERS} } }", SINK, "{ }");
    let by_url = configured(SOURCE, "{ sqlite: { url: ${SHOP}, table: orders } }", "{ }");
    for (world, place) in [(by_path, "hapax.yaml:3:"), (by_url, "hapax.yaml:4:")] {
        let answer = world.hapax_with(&["check"], &[("ORDERS", "orders.jsonl"), ("SHOP", "shop.db")]);
        answer.exits(2).says(&[
            place,
            "HX1004",
            "${…} stands without quotes",
            "put it in quotes: { url: \"${NAME}\" }",
        ]);
    }
}

/// Goal: a variable that is not set names itself, its place and the cure; one that is set is used. Method: one plain, one
/// with a reason of the user's own.
#[test]
fn a_missing_variable_is_named_with_its_place() {
    let source = "{ file: { path: \"${ORDERS}\" } }";
    let world = configured(source, "{ sqlite: { path: \"${SHOP:?where the shop is}\", table: orders } }", "{ }");
    let answer = world.hapax(&["check"]);
    answer.exits(2).says(&["hapax.yaml:3:", "HX1020", "the variable ORDERS is not set", "${ORDERS:-default}"]);
    answer.says(&["hapax.yaml:4:", "the variable SHOP is not set: where the shop is"]);
    let set = [("ORDERS", "orders.jsonl"), ("SHOP", "shop.db")];
    world.hapax_with(&["config", "show"], &set).exits(0).keeps_silent_about(&["HX1020"]);
}

/// Goal: a program reads problems as JSON. Method: `--json` with one problem.
#[test]
fn problems_are_told_to_programs_as_json() {
    let answer = configured(SOURCE, "{ sqlite: { path: shop.db, tabel: orders } }", "{ }").hapax(&["check", "--json"]);
    let problems = answer.exits(2).json();
    let told = problems["problems"].as_array().expect("a list");
    let unknown = told.iter().find(|problem| problem["code"] == "HX1010").expect("the unknown field");
    assert_eq!((unknown["file"].as_str(), &unknown["line"]), (Some("hapax.yaml"), &4.into()), "{answer}");
    assert_eq!(unknown["cure"], "did you mean table?", "{answer}");
}

/// Goal: no file, text that is no YAML, and a flag that does not exist are answered with code 2 and a cure.
#[test]
fn a_missing_file_and_a_wrong_flag_are_usage_errors() {
    let world = World::empty();
    world.hapax(&["check"]).exits(2).says(&["HX1001", "hapax.yaml", "create it, or name another with --config"]);
    world.write("hapax.yaml", "workflows: [\n");
    world.hapax(&["check"]).exits(2).says(&["hapax.yaml:", "HX1"]);
    world.hapax(&["run", "--bogus"]).exits(2).says(&["--bogus", "--help"]);
    world.hapax(&["frobnicate"]).exits(2).says(&["frobnicate"]);
}

/// Goal: a workflow that does not exist is answered with those that do.
#[test]
fn only_an_existing_workflow_can_be_chosen() {
    let world = World::shop("", "");
    world.hapax(&["run", "--once", "--only", "order"]).exits(2).says(&["HX5001", "\"order\"", "there are orders"]);
}

/// Goal: `--once` on a generator without a count is refused instead of running for ever.
#[test]
fn once_on_an_endless_generator_is_refused() {
    let world = World::shop("", "");
    let text = world.read("hapax.yaml").replace("file: { path: orders.jsonl }", "generate: { }");
    world.write("hapax.yaml", text);
    world.hapax(&["run", "--once"]).exits(2).says(&["HX5002", "orders", "set `count`"]);
}
