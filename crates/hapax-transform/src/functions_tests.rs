use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::*;

fn names(functions: &[Box<dyn Function>]) -> BTreeSet<&'static str> {
    functions.iter().map(|function| function.identifier()).collect()
}

/// Goal: no function of VRL is offered by itself, and none is lost unseen. Method: all that the crate has is on exactly
/// one of the two lists, and all that is offered the crate has.
#[test]
fn every_function_of_the_crate_is_offered_or_refused() {
    let (all, offered) = (names(&stdlib::all()), names(&offered()));
    let refused: BTreeSet<&str> = REFUSED.iter().map(|(name, _)| *name).collect();
    let unjudged: Vec<_> = all.iter().filter(|name| !offered.contains(*name) && !refused.contains(*name)).collect();
    assert!(unjudged.is_empty(), "new in VRL: read them, and put each on a list: {unjudged:?}");
    let both: Vec<_> = offered.intersection(&refused).collect();
    assert!(both.is_empty(), "offered and refused: {both:?}");
    let gone: Vec<_> = offered.difference(&all).collect();
    assert!(gone.is_empty(), "offered, and no longer in VRL: {gone:?}");
    assert_eq!(refused.len(), REFUSED.len(), "no name is refused twice");
}

/// Goal: what the white list rests on is noticed when VRL changes. Method: functions that VRL itself calls impure, or
/// whose own examples are not deterministic, are refused, but for those that only change the event.
#[test]
fn functions_that_are_not_pure_are_refused() {
    for function in stdlib::all() {
        let deterministic = function.examples().iter().all(|example| example.deterministic);
        let changes_the_event = matches!(function.identifier(), "del" | "only_fields");
        let fine = deterministic && (function.pure() || changes_the_event);
        let name = function.identifier();
        assert!(fine || refusal(name).is_some() || EXAMPLES_ONLY.contains(&name), "{name} is offered and is not pure");
    }
}

/// Offered although VRL marks an example or the function: read, and found to depend on the arguments alone.
const EXAMPLES_ONLY: &[&str] = &["assert", "assert_eq"];

/// Goal: the page is the list. Method: made again, and compared with what lies in the folder.
#[test]
fn the_page_of_functions_is_the_list() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/transform-functions.md");
    let page = page();
    if std::env::var_os("HAPAX_WRITE_PAGES").is_some() {
        std::fs::write(path, &page).expect("the page is written");
    }
    let lying = std::fs::read_to_string(path).unwrap_or_default();
    assert!(lying == page, "run the tests of hapax-transform with HAPAX_WRITE_PAGES=1, and look at the difference");
}

fn page() -> String {
    let mut page = String::from(
        "# Functions of transforms\n\nMade from the list in the program; a test keeps it so. What each function does is \
         in [VRL's own reference](https://vector.dev/docs/reference/vrl/functions/).\nA transform gives the same events \
         for the same input, in every process and after every crash, so only functions that depend on their arguments \
         alone are offered.\nWithout a time zone of their own, functions that read a time take it as UTC.\n\n## Offered\n\n",
    );
    let functions = offered();
    let categories: BTreeSet<&str> = functions.iter().map(|function| function.category()).collect();
    for category in categories {
        let mut names: Vec<_> = functions.iter().filter(|f| f.category() == category).map(|f| f.identifier()).collect();
        names.sort_unstable();
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        writeln!(page, "**{category}**: {}\n", names.join(", ")).expect("a string takes everything");
    }
    page.push_str("## Refused\n\n| function | because it | instead |\n|---|---|---|\n");
    for (name, reason) in REFUSED {
        writeln!(page, "| `{name}` | {} | {} |", reason.what(), reason.cure()).expect("a string takes everything");
    }
    page.push_str(
        "\n`format_timestamp` and `parse_timestamp` are offered, but their `timezone` must be written out, and must not \
         be `local`.\n",
    );
    page
}
