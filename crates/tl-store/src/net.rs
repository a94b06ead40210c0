//! The thread of requests and the connections, which all stores of a process share.

use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustls::pki_types::CertificateDer;

use crate::engine::Engine;
use crate::gate::Transport;
use crate::web::Web;

/// A thread and connections. Those of a process end with the last store and object that use them.
#[derive(Debug)]
pub(crate) struct Net {
    engine: Arc<Engine>,
    transport: Arc<dyn Transport>,
}

/// The parts that stores of this process share, while something uses them. After a fork they are still
/// the parent's.
struct Shared {
    engine: Weak<Engine>,
    /// With the system's root certificates alone.
    net: Weak<Net>,
}

static SHARED: Mutex<Shared> = Mutex::new(Shared { engine: Weak::new(), net: Weak::new() });

impl Net {
    /// The net of this process. Connections that trust other certificates than the system's, too, are
    /// the caller's own.
    ///
    /// # Errors
    /// When the thread cannot be started, or the system's certificates cannot be read.
    pub(crate) fn of_process(roots: &[CertificateDer<'static>]) -> io::Result<Arc<Self>> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let net = shared.net.upgrade().filter(|net| net.engine.is_of_this_process());
        if let Some(net) = net.filter(|_| roots.is_empty()) {
            return Ok(net);
        }
        let transport = Arc::new(Web::new(roots)?);
        let engine = shared.engine.upgrade().filter(|engine| engine.is_of_this_process());
        let engine = engine.map_or_else(|| Engine::start().map(Arc::new), Ok)?;
        shared.engine = Arc::downgrade(&engine);
        let net = Arc::new(Self { engine, transport });
        if roots.is_empty() {
            shared.net = Arc::downgrade(&net);
        }
        Ok(net)
    }

    /// A thread of its own for requests that `transport` sends.
    #[cfg(test)]
    pub(crate) fn new(transport: Arc<dyn Transport>) -> io::Result<Self> {
        Ok(Self { engine: Arc::new(Engine::start()?), transport })
    }

    /// As [`new`](Self::new), as a fork of this process sees it.
    #[cfg(test)]
    pub(crate) fn of_another_process(transport: Arc<dyn Transport>) -> io::Result<Self> {
        Ok(Self { engine: Arc::new(Engine::start()?.of_another_process()), transport })
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn transport(&self) -> Arc<dyn Transport> {
        Arc::clone(&self.transport)
    }
}
