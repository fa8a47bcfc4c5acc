//! Combinations that the audit must refuse: a promise that cannot be kept is not given.

use anyhow::Context;

use crate::child::Exit;
use crate::world::World;

/// `check` and `run` both refuse with code 3 and a code of their own, and nothing is written. Returns that code.
///
/// # Errors
/// If it could not be run to its end, or no code was printed.
pub fn run(world: &mut World) -> anyhow::Result<String> {
    world.config.conditions = "";
    world.write_config()?;
    world.feed(100)?;
    let (exit, said) = world.launch("checks", &["check"]).run()?;
    world.must((exit == Exit::Code(3)).into(), format!("check ended with {exit}: {said}"));
    let code = code_in(&said).with_context(|| format!("check printed no code: {said}"))?;
    let (exit, said) = world.launch("runs", &["run", "--once"]).run()?;
    world.must((exit == Exit::Code(3)).into(), format!("run ended with {exit}: {said}"));
    world.must(said.contains(&code).into(), format!("run does not say {code}: {said}"));
    let found = world.found()?;
    let untouched = found.rows.is_empty() && found.progress.is_none();
    world.must(untouched.into(), "a refused run wrote to the target");
    Ok(code)
}

/// The first `HX` and four digits in a text.
fn code_in(text: &str) -> Option<String> {
    text.match_indices("HX").find_map(|(at, _)| {
        let code = text.get(at..at + 6)?;
        code.bytes().skip(2).all(|byte| byte.is_ascii_digit()).then(|| code.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the code is found wherever it stands. Method: in a sentence, at the end, and not at all.
    #[test]
    fn a_code_is_found_in_a_sentence() {
        assert_eq!(code_in("error HX12: HX1203 cannot hold"), Some("HX1203".into()));
        assert_eq!(code_in("cannot hold (HX1301"), Some("HX1301".into()));
        assert_eq!(code_in("HX12é"), None);
        assert_eq!(code_in("HX"), None);
    }
}
