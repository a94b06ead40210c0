//! Reads an object of a store on this machine: `cargo run -p tl-store --example read_ranges`.

#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::error::Error;
use std::sync::Arc;

use tbl_io::{Location, Storage};
use tl_store::{RemoteStores, StoreOptions};
use tl_store_server::{Dialect, Service, serve};

fn main() -> Result<(), Box<dyn Error>> {
    let service = Arc::new(Service::new(Dialect::S3));
    service.objects.put("bucket/numbers", (0..=255).cycle().take(2 << 20).collect::<Vec<u8>>());
    let server = serve(service, 0)?;

    let mut options = StoreOptions::default();
    let given = [
        ("endpoint", server.endpoint()),
        ("access_key_id", "dummy".to_owned()),
        ("secret_access_key", "dummy".to_owned()),
    ];
    options.options.extend(given.map(|(name, value)| (name.to_owned(), value)));
    let stores = RemoteStores::new(options);

    let object = stores.open(&Location::new("s3://bucket/numbers"), None)?;
    let mut bytes = [0; 4];
    object.read_exact_at((1 << 20) + 65, &mut bytes)?;
    println!("{} bytes; from 1048641 on: {bytes:?}", object.len());
    println!("{:?}", stores.stats());
    assert_eq!(bytes, [65, 66, 67, 68]);
    Ok(())
}
