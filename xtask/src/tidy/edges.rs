//! Which crate may depend on which. A new edge is a decision: it is written down in `docs/adr/` and here.

use super::Finding;
use super::manifest::manifests;
use crate::tree::Tree;

/// A crate's place in the workspace.
pub(super) struct Place {
    /// Its name.
    pub(super) name: &'static str,
    /// The crates of this workspace that it depends on, all of them.
    on: &'static [&'static str],
    kind: Kind,
}

#[derive(PartialEq, Eq)]
enum Kind {
    /// Others build on it: everything it shows is documented, and it prints nothing.
    Library,
    /// A program.
    Program,
}

impl Place {
    pub(super) fn is_library(&self) -> bool {
        self.kind == Kind::Library
    }
}

/// They start servers and speak to them, and know nothing of ours: the tests of every crate may use them.
const FOR_ALL_TESTS: [&str; 2] = ["hapax-services", "hapax-kafka"];

/// The whole list. Dependencies point up.
pub(super) const ALLOWED: [Place; 12] = [
    Place { name: "hapax-services", on: &[], kind: Kind::Library },
    Place { name: "hapax-model", on: &[], kind: Kind::Library },
    Place { name: "hapax-sql", on: &["hapax-model"], kind: Kind::Library },
    Place { name: "hapax-engine", on: &["hapax-model"], kind: Kind::Library },
    Place { name: "hapax-connect", on: &["hapax-engine", "hapax-model", "hapax-sql"], kind: Kind::Library },
    Place { name: "hapax-transform", on: &["hapax-engine", "hapax-model"], kind: Kind::Library },
    Place { name: "hapax-kafka", on: &[], kind: Kind::Library },
    Place { name: "hapax-broker", on: &["hapax-model", "hapax-sql"], kind: Kind::Library },
    Place { name: "hapax-conform", on: &["hapax-broker", "hapax-services"], kind: Kind::Program },
    Place { name: "hapax-prove", on: &["hapax-kafka", "hapax-services"], kind: Kind::Program },
    Place {
        name: "hapax",
        on: &[
            "hapax-broker",
            "hapax-connect",
            "hapax-engine",
            "hapax-kafka",
            "hapax-model",
            "hapax-sql",
            "hapax-transform",
        ],
        kind: Kind::Program,
    },
    Place { name: "xtask", on: &["hapax-services"], kind: Kind::Program },
];

/// Rule: the edges are exactly those of the list.
pub(super) fn edges(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let ours = |name: &&str| *name == "xtask" || name.starts_with("hapax");
    for (name, path, manifest) in manifests(tree) {
        let Some(place) = ALLOWED.iter().find(|place| place.name == name) else {
            findings.push(Finding::new(path, "a new crate: give it a place in xtask/src/tidy/edges.rs"));
            continue;
        };
        let named = |kind| manifest.dependencies(kind).map(|(name, _)| name).filter(ours).collect::<Vec<_>>();
        let mut real = named("dependencies");
        real.extend(named("build-dependencies"));
        for edge in real.iter().filter(|edge| !place.on.contains(edge)) {
            findings.push(Finding::new(path, format!("{name} must not depend on {edge}")));
        }
        for edge in place.on.iter().filter(|edge| !real.contains(edge)) {
            findings.push(Finding::new(path, format!("the edge to {edge} is gone: take it off the list")));
        }
        let known = |edge: &&&str| place.on.contains(*edge) || name == **edge || FOR_ALL_TESTS.contains(*edge);
        for edge in named("dev-dependencies").iter().filter(|edge| !known(edge)) {
            findings.push(Finding::new(path, format!("not even the tests of {name} may depend on {edge}")));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        edges(&Tree::of(&[(path, text)])).into_iter().map(|finding| finding.text).collect()
    }

    /// Goal: the list is kept in both directions. Method: an edge too many, one too few, a new crate, a test's edge.
    #[test]
    fn the_edges_are_exactly_those_of_the_list() {
        let engine = "crates/hapax-engine/Cargo.toml";
        let good = "[dependencies]\nhapax-model.workspace = true\nserde.workspace = true\n";
        assert!(found(engine, good).is_empty());
        let with_sql = format!("{good}hapax-sql = {{ workspace = true, optional = true }}\n");
        assert_eq!(found(engine, &with_sql), ["hapax-engine must not depend on hapax-sql"]);
        assert_eq!(found(engine, "[dependencies]\n"), ["the edge to hapax-model is gone: take it off the list"]);
        let in_tests = format!("{good}[dev-dependencies]\nhapax-connect.workspace = true\n");
        assert_eq!(found(engine, &in_tests), ["not even the tests of hapax-engine may depend on hapax-connect"]);
        let with_servers = format!("{good}[dev-dependencies]\nhapax-services.workspace = true\n");
        assert!(found(engine, &with_servers).is_empty());
        assert_eq!(found("crates/hapax-new/Cargo.toml", "").len(), 1);
    }

    /// Goal: the list itself has no cycle. Method: every edge points to an earlier line.
    #[test]
    fn dependencies_point_up_the_list() {
        for (at, place) in ALLOWED.iter().enumerate() {
            for edge in place.on {
                assert!(ALLOWED[..at].iter().any(|earlier| earlier.name == *edge), "{} → {edge}", place.name);
            }
        }
    }
}
