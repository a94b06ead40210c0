//! Copies a batch to a device and back, or says why there is none.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use tl_cuda::{BufferLimits, Device, Uploader};

fn main() -> Result<(), Box<dyn Error>> {
    let device = match Device::open(0) {
        Ok(device) => device,
        Err(reason) => {
            println!("{reason}");
            return Ok(());
        }
    };
    let uploader = Uploader::new(&device, BufferLimits::default())?;
    let mut batch = device.pinned(1 << 20)?;
    batch.fill(7);
    let buffer = uploader.upload(Arc::new(batch), None, &[], &[])?;
    let back = buffer.read()?;
    println!("{}: {} bytes there and back", device.name(), back.len());
    Ok(())
}
