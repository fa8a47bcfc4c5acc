//! `cargo xtask bench [NAME]`: every benchmark of the workspace, with the command that repeats it.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::child::{cargo, run as run_child};
use crate::phase::Phases;
use crate::tree::Tree;
use crate::{Usage, tidy};

/// A bench target: `crates/CRATE/benches/NAME.rs`, or a folder NAME with a `main.rs`.
#[derive(Debug, PartialEq, Eq)]
struct Bench {
    package: String,
    name: String,
}

/// Runs all benches, or those of one name.
pub(crate) fn run(words: &[&str]) -> Result<ExitCode> {
    let all = benches(&Tree::load()?);
    let chosen: Vec<&Bench> = match words {
        [] => all.iter().collect(),
        ["--list"] => {
            for bench in &all {
                println!("{:<24} {}", bench.name, bench.package);
            }
            return Ok(ExitCode::SUCCESS);
        }
        [name] => all.iter().filter(|bench| bench.name == *name).collect(),
        [_, more, ..] => bail!(Usage(format!("bench takes one name, not also \"{more}\""))),
    };
    if chosen.is_empty() {
        let names: Vec<&str> = all.iter().map(|bench| bench.name.as_str()).collect();
        bail!(Usage(format!("no bench of that name; there are: {}", names.join(", "))));
    }
    println!("Figures depend on the machine: compare ratios of one run. docs/BENCHMARKS.md keeps the recorded ones.");
    let mut phases = Phases::default();
    for bench in chosen {
        phases.run(&format!("{} ({})", bench.name, bench.package), |_| {
            run_child(&mut cargo(["bench", "--package", &bench.package, "--bench", &bench.name]))
        });
    }
    Ok(phases.finish())
}

fn benches(tree: &Tree) -> Vec<Bench> {
    let of_path = |path: &str| {
        let package = tidy::crate_of(path)?;
        let rest = path.split_once("/benches/")?.1;
        let name = rest.strip_suffix("/main.rs").or_else(|| rest.strip_suffix(".rs"))?;
        (!name.contains('/')).then(|| Bench { package: package.to_owned(), name: name.to_owned() })
    };
    tree.paths().filter_map(of_path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: every bench target is found and nothing else. Method: a file, a folder, a module of the folder.
    #[test]
    fn benches_are_found_by_their_place() {
        let tree = Tree::of(&[
            ("crates/hapax-model/benches/keys.rs", ""),
            ("crates/hapax/benches/delivery/main.rs", ""),
            ("crates/hapax/benches/delivery/bare.rs", ""),
            ("crates/hapax/src/bench.rs", ""),
        ]);
        let bench = |package: &str, name: &str| Bench { package: package.to_owned(), name: name.to_owned() };
        assert_eq!(benches(&tree), [bench("hapax-model", "keys"), bench("hapax", "delivery")]);
    }
}
