//! A wire that is cut when COMMIT passes, as MySQL's protocol spells it.

use super::COMMIT_MESSAGE;
pub(super) use crate::test_wire::Cut;

/// COMMIT alone in its packet: "READ COMMITTED" passes too.
pub(super) async fn wire(port: u16, cut: Cut) -> u16 {
    let length = u8::try_from(COMMIT_MESSAGE.len() + 1).unwrap();
    let packet = [&[length, 0, 0, 0, 3], COMMIT_MESSAGE.as_bytes()].concat();
    crate::test_wire::wire(port, packet, cut).await
}
