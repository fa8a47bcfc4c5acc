//! Whether requests about groups can be answered here, now.

use kafka_protocol::error::ResponseError;

use crate::broker::Broker;
use crate::store::Store;

impl<S: Store> Broker<S> {
    /// 16: another broker leads, or our lease may be over. 14: we lead, and the groups are being loaded.
    pub(crate) fn coordinates(&self) -> Result<(), ResponseError> {
        if !self.lead.leads() || !self.lead.fresh() {
            Err(ResponseError::NotCoordinator)
        } else if !self.groups.is_led() {
            Err(ResponseError::CoordinatorLoadInProgress)
        } else {
            Ok(())
        }
    }
}
