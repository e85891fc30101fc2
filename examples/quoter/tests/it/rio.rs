//! The same two programs with the real-time I/O subsystem, selected only by their options.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use chronorb_net::Undo;
use chronorb_rio::kernel::{EnforcedPlan, Ways};
use chronorb_rio::plan::Plan;
use chronorb_testnet::{Host, INTERFACE, Layout, Network};

/// A server on one host, and the reference that it printed. Killed when a test ends early.
struct Server {
    child: Child,
    reference: String,
}

impl Server {
    fn start(network: &Network, options: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quoter-server"));
        command.args(options).stdout(Stdio::piped());
        let child = network.host(Host::B).spawn(&mut command);
        let mut child = child.expect("the server starts");
        let stdout = child.stdout.take().expect("it is piped");
        let mut reference = String::new();
        BufReader::new(stdout)
            .read_line(&mut reference)
            .expect("the server prints its reference");
        Self {
            child,
            reference: reference.trim().to_owned(),
        }
    }

    /// Runs a client on the other host.
    fn client(&self, network: &Network, options: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quoter-client"));
        command.args([&self.reference, "ACME"]).args(options);
        let output = network.host(Host::A).enter(|| command.output());
        output.expect("the client runs")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the two hosts; `None` if they are not available.
fn network() -> Option<Network> {
    match Network::build(&Layout::default()) {
        Ok(network) => Some(network),
        Err(why) => {
            println!("NOT RUN: {why}");
            let required = std::env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
            assert!(!required, "CHRONORB_PEERS=required: {why}");
            None
        }
    }
}

fn assert_quoted(output: &Output) {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("ACME: 10 at 100"), "{text}");
}

#[test]
fn an_unchanged_server_is_told_by_its_endpoint_alone() {
    for driver in ["xdp", "packet"] {
        let Some(network) = network() else { return };
        let address = network.host(Host::B).addresses().v4;
        let endpoint = format!("riop://{address}:2809/driver={driver}");
        let server = Server::start(&network, &["-ORBListenEndpoints", &endpoint]);
        // By the kernel's TCP, and by RIO on this side too.
        assert_quoted(&server.client(&network, &[]));
        let options = ["-ORBRioInterface", INTERFACE, "-ORBRioDriver", driver];
        let only = ["-ORBProtocols", "riop"];
        assert_quoted(&server.client(
            &network,
            &[
                options[0], options[1], options[2], options[3], only[0], only[1],
            ],
        ));
    }
}

#[test]
fn endpoints_and_calls_are_of_the_classes_of_a_plan() {
    let Some(network) = network() else { return };
    let folder = std::env::temp_dir().join(format!("chronorb-quoter-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let plan = folder.join("plan.toml");
    let text = format!(
        "[interface]\nname = \"{INTERFACE}\"\nmtu = 1500\n\n[[class]]\nname = \"quotes\"\n\
        ports = [2809]\nprocessing = \"periodic\"\nperiod = \"2 ms\"\nbudget = 64\n"
    );
    std::fs::write(&plan, text).expect("it can be written");
    let plan = plan.display().to_string();
    let address = network.host(Host::B).addresses().v4;
    let endpoint = format!("riop://{address}:2809");
    let options = ["-ORBListenEndpoints", &endpoint, "-ORBRioPlan", &plan];
    let server = Server::start(&network, &options);
    assert_quoted(&server.client(&network, &["-ORBRioPlan", &plan]));
    // Its thread has the name of the class.
    let threads = format!("/proc/{}/task", server.child.id());
    let threads = std::fs::read_dir(threads).expect("it runs");
    let mut names = threads.filter_map(|thread| {
        let path = thread.ok()?.path().join("comm");
        std::fs::read_to_string(path).ok()
    });
    assert!(names.any(|name| name.trim() == "rio-quotes"));
    std::fs::remove_dir_all(folder).expect("it is there");
}

#[test]
fn by_the_kernels_own_tcp_a_class_has_the_share_that_the_kernel_keeps() {
    let Some(network) = network() else { return };
    let folder = std::env::temp_dir().join(format!("chronorb-shares-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("plan.toml");
    let text = format!(
        "[interface]\nname = \"{INTERFACE}\"\nrate = \"100 Mbit\"\ndriver = \"kernel\"\n\n\
        [[class]]\nname = \"quotes\"\nprocessing = \"periodic\"\nperiod = \"10 ms\"\nbudget = 40\n\
        dscp = 46\n"
    );
    std::fs::write(&file, text).expect("it can be written");
    let options = |endpoint| {
        let file = file.display().to_string();
        ["-ORBListenEndpoints", endpoint, "-ORBRioPlan", &file].map(str::to_owned)
    };
    let address = network.host(Host::B).addresses().v4;
    let endpoint = format!("riop://{address}:2809/driver=kernel&class=quotes");
    let options = options(&endpoint);
    let options = options.each_ref().map(String::as_str);

    // Nothing enforces it yet.
    let mut command = Command::new(env!("CARGO_BIN_EXE_quoter-server"));
    command.args(options);
    let output = network.host(Host::B).enter(|| command.output());
    let output = output.expect("the server starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("chronorb rio setup --kernel"), "{said}");

    let plan = Plan::read(&file, &|_| None).expect("it is one");
    let keep = || {
        EnforcedPlan::keep(
            &plan.interface,
            &plan.classes,
            Ways::Out,
            &mut |_: &Undo| Ok(()),
        )
    };
    let kept = network.host(Host::B).enter(keep).expect("it can be kept");
    let server = Server::start(&network, &options);
    assert_quoted(&server.client(&network, &[]));
    let here = network.host(Host::B);
    let index = here.link().expect("it is there").index;
    let mut netlink = here.netlink().expect("it opens");
    let classes = netlink.classes(index).expect("they are listed");
    let quotes = &kept.tree().branches[0];
    let quotes = classes.iter().find(|class| class.handle == quotes.handle);
    assert!(quotes.expect("it is there").sent.octets > 0, "{classes:?}");
    drop(server);
    here.enter(|| kept.end()).expect("it can be undone");
    std::fs::remove_dir_all(folder).expect("it is there");
}

#[test]
fn an_interface_that_is_not_there_is_told_when_the_orb_is_made() {
    let Some(network) = network() else { return };
    let mut command = Command::new(env!("CARGO_BIN_EXE_quoter-server"));
    command.args(["-ORBRioInterface", "nowhere0"]);
    let output = network.host(Host::B).enter(|| command.output());
    let output = output.expect("the server starts");
    assert!(!output.status.success());
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("-ORBRioInterface") && text.contains("nowhere0"),
        "{text}"
    );
}
