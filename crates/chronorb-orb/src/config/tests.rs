//! Accepted and refused command lines.

use std::time::Duration;

use super::*;

fn args(text: &str) -> Vec<String> {
    text.split('|').map(str::to_owned).collect()
}

#[test]
fn options_are_taken_out_of_the_command_line() {
    let mut line = args("prog|-ORBThreads|2|--mine|-ORBInitRef|Radar=corbaloc::h/Radar|x");
    let config = OrbConfig::read(&mut line).expect("a correct command line");
    assert_eq!(line, args("prog|--mine|x"));
    assert_eq!(config.threads, ThreadCount::from(2));
    assert_eq!(
        config.init_refs,
        [("Radar".to_owned(), "corbaloc::h/Radar".to_owned())]
    );
}

#[test]
fn idle_connections_stay_by_default_or_by_zero() {
    let time_out = |line| {
        let config = OrbConfig::read(&mut args(line)).expect("a correct command line");
        config.client_idle_timeout
    };
    assert_eq!(time_out("prog"), None);
    assert_eq!(time_out("-ORBClientIdleTimeout|0"), None);
    let some = Some(Duration::from_millis(1500));
    assert_eq!(time_out("-ORBClientIdleTimeout|1500"), some);
}

#[test]
fn lanes_take_two_arguments_or_one() {
    let mut line =
        args("-ORBLaneEndpoint|1:0|iiop://:4000|-ORBLaneListenEndpoints|1:1 iiop://:4001");
    let config = OrbConfig::read(&mut line).expect("a correct command line");
    let ports: Vec<_> = config
        .lane_listen_endpoints
        .iter()
        .map(|(lane, e)| {
            (
                *lane,
                e.address
                    .as_host()
                    .map(|(_, port)| port)
                    .unwrap_or_default(),
            )
        })
        .collect();
    assert_eq!(ports, [((1, 0), 4000), ((1, 1), 4001)]);
}

#[test]
fn wrong_settings_are_refused_and_the_command_line_stays() {
    for (line, word) in [
        ("-ORBColour|red", "-ORBColour"),
        ("-ORBThreads", "needs a value"),
        ("-ORBThreads|none", "1 to 1024"),
        ("-ORBRealTime|perhaps", "required, preferred or off"),
        ("-ORBListenEndpoints|localhost", "://"),
        ("-ORBConfigFile|/does/not/exist", "/does/not/exist"),
        ("-ORBInitRef|NameService", "NAME=URL"),
        ("-ORBFragmentSize|8", "from 32 to 1073741824, or 0"),
        ("-ORBArchitecture|realtime", "real-time, half-sync"),
        (
            "-ORBThreadpoolStrategy|pool",
            "reactive or thread-per-connection",
        ),
        ("-ORBClientConnection|shared", "is not exclusive, leader"),
        ("-ORBMaxClientConnections|0", "1 to 1048576"),
        (
            "-ORBShareConnectionsAcrossPriorities|maybe",
            "true or false",
        ),
    ] {
        let mut given = args(line);
        let error = OrbConfig::read(&mut given).expect_err(line).to_string();
        assert!(error.contains(word), "{line}: {error}");
        assert_eq!(given, args(line));
    }
}

#[cfg(feature = "monitor")]
#[test]
fn a_monitor_is_off_on_or_at_a_path() {
    let error = OrbConfig::read(&mut args("-ORBMonitor|yes")).expect_err("a wrong value");
    assert!(error.to_string().contains("off, on or a path"), "{error}");
}

fn choices(config: &OrbConfig) -> (ThreadpoolStrategy, ConnectionStrategy, bool) {
    (
        config.threadpool_strategy,
        config.client_connection,
        config.share_connections_across_priorities,
    )
}

#[test]
fn an_architecture_makes_the_settings_that_it_stands_for() {
    for architecture in Architecture::ALL {
        let mut line = args(&format!("prog|-ORBArchitecture|{}", architecture.name()));
        let config = OrbConfig::read(&mut line).expect("a correct command line");
        let (threads, connections, shared) = choices(&config);
        assert_eq!(threads, architecture.threadpool_strategy());
        assert_eq!(connections, architecture.client_connection());
        assert_eq!(shared, architecture.shares_across_priorities());
    }
}

#[test]
fn the_default_architecture_is_what_the_defaults_are() {
    let mut config = OrbConfig::default();
    config.set_architecture(Architecture::default());
    assert_eq!(choices(&config), choices(&OrbConfig::default()));
}

#[test]
fn what_is_said_beside_an_architecture_wins_whatever_comes_first() {
    let beside = "-ORBThreadpoolStrategy|half-sync|-ORBShareConnectionsAcrossPriorities|false";
    for line in [
        format!("-ORBArchitecture|leader-followers-muxed|{beside}"),
        format!("{beside}|-ORBArchitecture|leader-followers-muxed"),
    ] {
        let config = OrbConfig::read(&mut args(&line)).expect("a correct command line");
        let expected = (
            ThreadpoolStrategy::HalfSyncHalfAsync,
            ConnectionStrategy::Leader,
            false,
        );
        assert_eq!(choices(&config), expected, "{line}");
    }
}

#[test]
fn what_is_not_utf_8_is_left_alone_or_refused() {
    use std::os::unix::ffi::OsStringExt;
    let strange = || OsString::from_vec(b"caf\xe9".to_vec());
    let mut line = vec![
        "prog".into(),
        strange(),
        "-ORBThreads".into(),
        "2".into(),
        strange(),
    ];
    let config = OrbConfig::read_os(&mut line).expect("a correct command line");
    assert_eq!(config.threads, ThreadCount::from(2));
    assert_eq!(line, ["prog".into(), strange(), strange()]);

    let mut line = vec!["prog".into(), "-ORBId".into(), strange()];
    let error = OrbConfig::read_os(&mut line).expect_err("a value is text");
    assert_eq!(
        error.to_string(),
        "command line: -ORBId: the value is not UTF-8"
    );
    assert_eq!(line.len(), 3);

    let given = environment([("CHRONORB_ORB_ORB_ID".into(), strange())].into_iter());
    let error = given.err().expect("a value is text").to_string();
    assert!(
        error.contains("CHRONORB_ORB_ORB_ID") && error.contains("UTF-8"),
        "{error}"
    );
}

#[test]
fn the_list_of_options_has_all_of_them_with_their_defaults() {
    let list = help::list();
    let default = format!("{:?}", OrbConfig::default());
    for setting in SETTINGS.iter().filter(|setting| setting.missing.is_none()) {
        let option = setting.option();
        let mut lines = list.lines();
        let first = lines.find(|line| line.split(' ').next() == Some(option));
        let form = first.expect(option).split_once(' ').expect(option).1;
        assert!(!form.is_empty(), "{option}");
        let meaning = lines.next().expect(option);
        let listed = meaning.trim_end_matches(']').split_once('[');
        if let Some((_, value)) = listed {
            let mut line = vec![option.to_owned(), value.to_owned()];
            let config = OrbConfig::read(&mut line).expect(option);
            assert_eq!(format!("{config:?}"), default, "{option} {value}");
        }
        let is_choice = matches!(setting.apply, Apply::Choice(_));
        assert!(!is_choice || listed.is_some(), "{option} lists no default");
    }
}

#[test]
fn help_is_an_outcome_of_its_own_and_leaves_the_command_line() {
    let mut line = args("prog|-ORBThreads|2|-ORBhelp|x");
    assert_eq!(OrbConfig::read(&mut line).map(drop), Err(ConfigError::Help));
    assert_eq!(line, args("prog|-ORBThreads|2|-ORBhelp|x"));
    // The value of another option is none.
    let mut line = args("-ORBId|-ORBHelp");
    let config = OrbConfig::read(&mut line).expect("a correct command line");
    assert_eq!(config.orb_id, "-ORBHelp");
}

/// Settings of files.
#[cfg(feature = "config-file")]
mod in_files {
    use super::*;

    #[test]
    fn the_command_line_wins_over_the_file() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(
            file.path(),
            "threads = 7\nrequest_timeout = 250\n\
             listen_endpoints = [\"iiop://a:1\", \"iiop://b:2\"]\n\
             [init_refs]\nRadar = \"corbaloc::h/Radar\"\n",
        )
        .expect("it can be written");
        let mut line = args("-ORBThreads|2|-ORBConfigFile");
        line.push(file.path().display().to_string());
        let config = OrbConfig::read(&mut line).expect("a correct configuration");
        assert_eq!(config.threads, ThreadCount::from(2));
        assert_eq!(config.request_timeout, Duration::from_millis(250));
        assert_eq!(config.listen_endpoints.len(), 2);
        assert_eq!(config.init_refs[0].0, "Radar");
    }

    #[test]
    fn endpoints_of_a_later_source_replace_those_of_an_earlier_one() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), "listen_endpoints = \"iiop://a:1\"\n")
            .expect("it can be written");
        let path = file.path().display();
        let mut line = args(&format!(
            "-ORBConfigFile|{path}|-ORBEndpoint|iiop://b:2|-ORBEndpoint|iiop://c:3"
        ));
        let config = OrbConfig::read(&mut line).expect("a correct configuration");
        let hosts: Vec<_> = config
            .listen_endpoints
            .iter()
            .map(|e| {
                e.address
                    .as_host()
                    .map(|(host, _)| host)
                    .unwrap_or_default()
            })
            .collect();
        assert_eq!(hosts, ["b", "c"]);
    }

    #[test]
    fn an_architecture_of_a_later_source_wins_over_settings_of_an_earlier_one() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let text = "client_connection = \"leader\"\n\
                    architecture = \"leader-followers-muxed\"\nthreads = 7\n";
        std::fs::write(file.path(), text).expect("it can be written");
        let path = file.path().display();
        let read = |beside: &str| {
            let mut line = args(&format!("-ORBConfigFile|{path}{beside}"));
            OrbConfig::read(&mut line).expect("a correct configuration")
        };
        let (_, connections, shared) = choices(&read(""));
        assert_eq!((connections, shared), (ConnectionStrategy::Leader, true));
        let config = read("|-ORBArchitecture|real-time");
        assert_eq!(choices(&config), choices(&OrbConfig::default()));
        assert_eq!(config.threads, ThreadCount::from(7));
    }
}
