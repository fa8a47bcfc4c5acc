//! A wire that is cut when COMMIT passes, as PostgreSQL's protocol spells it.

use super::COMMIT_MESSAGE;
pub(super) use crate::test_wire::Cut;

pub(super) async fn wire(port: u16, cut: Cut) -> u16 {
    crate::test_wire::wire(port, COMMIT_MESSAGE.into(), cut).await
}
