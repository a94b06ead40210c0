//! The hosts that stores ask over sockets, and the names that they look up for that.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tl_store_server::serve;

use super::*;
use crate::gate::{is_loopback, is_metadata};
use crate::web::Web;

/// The name of the only host that answers.
const HOST: &str = "localhost";

/// Hosts that were asked by their address, and names that were looked up.
#[derive(Debug, Default)]
struct Asked(Mutex<BTreeSet<String>>);

impl Asked {
    fn note(&self, host: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(host.to_owned());
    }

    fn hosts(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// The failure of everything that would leave this machine.
fn elsewhere() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "another machine")
}

impl Resolve for Asked {
    fn resolve(&self, name: Name) -> Resolving {
        self.note(name.as_str());
        let found = match name.as_str() {
            HOST => {
                let addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0))];
                Ok(Box::new(addresses.into_iter()) as Addrs)
            }
            _ => Err(elsewhere().into()),
        };
        Box::pin(std::future::ready(found))
    }
}

/// Sends requests as stores do, but none to an address of another machine.
#[derive(Debug)]
struct Recorded {
    web: Web,
    asked: Arc<Asked>,
}

#[async_trait]
impl Transport for Recorded {
    async fn send(&self, request: http::Request<Bytes>, pool: usize) -> io::Result<Answer> {
        let host = request.uri().host().unwrap_or_default();
        // Addresses are not looked up.
        if host.starts_with('[') || host.parse::<Ipv4Addr>().is_ok() {
            self.asked.note(host);
            if !is_loopback(host) {
                return Err(elsewhere());
            }
        }
        self.web.send(request, pool).await
    }
}

/// Opens, lists and reads with these options, and returns the outcome and the hosts that were asked.
fn asked(dialect: Dialect, given: &[(&str, &str)]) -> (Result<(), String>, Vec<String>) {
    let service = Service::new(dialect);
    let stored = content(2 << 20);
    service.objects.put("b/k", stored.clone());
    let serving = serve(Arc::new(service), 0).unwrap();
    // The hub sends requests for files to `HOST`, as another host than itself.
    let mut endpoint = serving.endpoint();
    if dialect != Dialect::Hub {
        endpoint = endpoint.replace("127.0.0.1", HOST);
    }
    let asked = Arc::<Asked>::default();
    let web = Web::resolving(&[], &asked).unwrap();
    let transport = Recorded { web, asked: Arc::clone(&asked) };
    let mut options = StoreOptions { deadline: Duration::from_secs(20), ..StoreOptions::default() };
    let given = given.iter().copied().chain([("endpoint", &*endpoint)]);
    options.options.extend(given.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let net = Arc::new(Net::new(Arc::new(transport)).unwrap());
    let stores = RemoteStores::over(options, Some(net));
    let folder = match dialect {
        Dialect::Gcs => "gs://b/",
        Dialect::Azure => "az://b/",
        Dialect::Hub => "hf://datasets/o/b/",
        Dialect::S3 | Dialect::Http | _ => "s3://b/",
    };
    let opened = stores.open(&Location::new(format!("{folder}k")), None);
    let outcome = opened.map_err(|error| error.to_string()).map(|object| {
        let mut bytes = vec![0; 1000];
        object.read_exact_at(1_500_000, &mut bytes).unwrap();
        assert_eq!(bytes, stored[1_500_000..1_501_000]);
        assert_eq!(stores.list(&Location::new(folder)).unwrap().len(), 1);
    });
    (outcome, asked.hosts())
}

/// In a process without the settings of the user and of this machine.
#[test]
fn no_host_is_looked_up_but_the_endpoint() {
    const CHILD: &str = "TL_STORE_NAMES";
    if std::env::var_os(CHILD).is_none() {
        let home = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["tests::names::no_host_is_looked_up_but_the_endpoint", "--exact"]);
        let output = child.env_clear().env(CHILD, "1").env("HOME", home.path()).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && printed.contains("1 passed"), "{printed}");
        return;
    }
    for dialect in [Dialect::S3, Dialect::Gcs, Dialect::Azure, Dialect::Hub] {
        let is_hub = dialect == Dialect::Hub;
        let account: &[_] =
            if dialect == Dialect::Azure { &[("account_name", "dummy")] } else { &[] };
        let with = |given: &[_]| asked(dialect, &[account, given].concat());
        let check = |(outcome, hosts): (Result<(), String>, Vec<String>)| {
            let expected: &[_] = if is_hub { &["127.0.0.1", HOST] } else { &[HOST] };
            assert_eq!(outcome, Ok(()), "{dialect:?}");
            assert_eq!(hosts, expected, "{dialect:?}");
        };
        check(with(&[("anonymous", "true")]));
        let keys = options(dialect);
        let keys = keys.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        check(asked(dialect, &keys.filter(|&(name, _)| name != "endpoint").collect::<Vec<_>>()));
        if is_hub {
            check(with(&[]));
            continue;
        }
        let (outcome, hosts) = with(&[]);
        let refused = outcome.unwrap_err();
        assert!(refused.contains("no credentials for "), "{refused}");
        assert_eq!(hosts, [""; 0], "{dialect:?}");
        // Users can ask for it, and then it is noted.
        let (outcome, hosts) = with(&[("credentials", "instance")]);
        assert!(outcome.is_err(), "{dialect:?}");
        assert!(hosts.iter().any(|host| is_metadata(host)), "{dialect:?}: {hosts:?}");
    }
}
