//! `chronorb sched learn`, with a running ORB.

use std::fs;
use std::process::{Command, Output};

use chronorb_orb::codegen::v1::Decoder;
use chronorb_orb::{
    Call, MonitorSocket, Operation, Orb, OrbConfig, ReplyWriter, Scope, Skeleton, SystemException,
};
use tempfile::TempDir;

use crate::support::{stderr, stdout};

/// A servant whose operations do nothing.
struct Map;

impl Skeleton for Map {
    fn repository_id(&self) -> &'static str {
        "IDL:acme.com/Map:1.0"
    }

    fn is_a(&self, id: &str) -> bool {
        id == self.repository_id()
    }

    fn dispatch<'a>(
        &self,
        _: &Call<'a>,
        _: &[u8],
        _: &mut Decoder<'a>,
        reply: &mut ReplyWriter<'_>,
    ) -> Result<(), SystemException> {
        reply.normal().map(drop)
    }
}

const SCHEDULE: &str = "\
# The plan of the map.
[[operation]]
name = \"Map::draw\" # the whole map
wcet = \"90 ms\"
period = \"1 Hz\"

[[operation]]
name = \"Map::clear\"
wcet = \"1 ms\"
period = \"1 Hz\"
";

fn learn(folder: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chronorb"));
    command
        .args(["sched", "learn"])
        .arg(folder.path().join("map.toml"))
        .arg(folder.path().join("orb.sock"))
        .args(arguments);
    command.output().expect("the command starts")
}

#[test]
fn measured_times_get_into_the_schedule() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("map.toml");
    fs::write(&file, SCHEDULE).expect("written");
    let mut args = ["-ORBListenEndpoints", "iiop://127.0.0.1:0"]
        .map(str::to_owned)
        .to_vec();
    let mut config = OrbConfig::read(&mut args).expect("the options are correct");
    config.monitor = MonitorSocket::At(folder.path().join("orb.sock"));
    config.measure = 1;
    let server = Orb::with_config(config).expect("it can be made");
    let root = server.root_poa().expect("the endpoint opens");
    let object = root.serve(Map).expect("it activates");
    root.manager().activate().expect("it was not deactivated");

    let nothing = learn(&folder, &["--margin", "20%"]);
    assert_eq!(nothing.status.code(), Some(1), "{nothing:?}");
    assert!(stderr(&nothing).contains("-ORBMeasure 1"), "{nothing:?}");

    let mut none = Vec::new();
    let client = Orb::init(&mut none).expect("it can be made");
    let text = server.object_to_string(&object);
    let object = client.string_to_object(&text).expect("the reference reads");
    for _ in 0..20 {
        Scope::with(|scope| {
            let called = object.invoke(scope, &Operation::twoway("draw"), &|_| Ok(()));
            called.map(drop).expect("it is served");
        });
    }

    let few = learn(&folder, &["--margin", "20%"]);
    assert_eq!(few.status.code(), Some(0), "{few:?}");
    let told = "left: Map::draw has 20 executions, of the 100 that are needed";
    assert!(stdout(&few).contains(told), "{few:?}");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), SCHEDULE);

    let learnt = learn(&folder, &["--margin", "20%", "--least", "20"]);
    assert_eq!(learnt.status.code(), Some(0), "{learnt:?}");
    assert!(
        stdout(&learnt).contains("left: Map::clear is not measured"),
        "{learnt:?}"
    );
    let text = fs::read_to_string(&file).expect("it is there");
    assert!(
        text.contains("name = \"Map::draw\" # the whole map\n"),
        "{text}"
    );
    assert!(text.contains(" in 20 executions, and 20 %\n"), "{text}");
    assert!(!text.contains("90 ms"), "{text}");
    assert!(text.contains("wcet = \"1 ms\"\n"), "{text}");

    let wrong = learn(&folder, &["--margin", "much"]);
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
    client.shutdown(true).expect("no servant asks for it");
    server.shutdown(true).expect("no servant asks for it");
}
