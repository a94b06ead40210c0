//! The thread of requests and the connections, which all stores of a process share.

use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::engine::Engine;
use crate::gate::Transport;
use crate::web::Web;

/// A thread and connections. Those of a process end with the last store and object that use them.
#[derive(Debug)]
pub(crate) struct Net {
    engine: Engine,
    transport: Arc<dyn Transport>,
}

/// The net of this process, while something uses it. After a fork it is still the parent's.
static NET: Mutex<Weak<Net>> = Mutex::new(Weak::new());

impl Net {
    /// The net of this process.
    ///
    /// # Errors
    /// When the thread cannot be started, or the system's certificates cannot be read.
    pub(crate) fn of_process() -> io::Result<Arc<Self>> {
        let mut shared = NET.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(net) = shared.upgrade().filter(|net| net.engine.is_of_this_process()) {
            return Ok(net);
        }
        let net = Arc::new(Self::new(Arc::new(Web::new()?))?);
        *shared = Arc::downgrade(&net);
        Ok(net)
    }

    /// A thread of its own for requests that `transport` sends.
    pub(crate) fn new(transport: Arc<dyn Transport>) -> io::Result<Self> {
        Ok(Self { engine: Engine::start()?, transport })
    }

    /// As [`new`](Self::new), as a fork of this process sees it.
    #[cfg(test)]
    pub(crate) fn of_another_process(transport: Arc<dyn Transport>) -> io::Result<Self> {
        Ok(Self { engine: Engine::start()?.of_another_process(), transport })
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn transport(&self) -> Arc<dyn Transport> {
        Arc::clone(&self.transport)
    }
}
