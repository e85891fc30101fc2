//! Proofs of identity by TLS, and connections without them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use chronorb_rt::Deadline;
use chronorb_transport::tcp::Tcp;
use chronorb_transport::tls::{Tls, TlsSettings, Verify};
use chronorb_transport::{Address, ConnectError, Connection, IoError, Setup, Transport};
use rcgen::BasicConstraints;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::certificates::Authority;
use crate::tls_peers::{
    EchoServer, RawClient, accept, alert_of, client_hello, connect, echoes, listen, patience, raw,
    raw_handshake, raw_server, read, soon,
};

/// A directory, an authority, and the settings of a program at 127.0.0.1.
fn radar() -> (tempfile::TempDir, Authority, TlsSettings) {
    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new(directory.path(), "authority");
    let settings = authority.settings("radar", &["127.0.0.1", "localhost"]);
    (directory, authority, settings)
}

fn tls(settings: &TlsSettings) -> Tls {
    Tls::new(read(settings))
}

fn with_versions(settings: &TlsSettings, versions: &str) -> TlsSettings {
    TlsSettings {
        versions: versions.parse().expect("versions"),
        ..settings.clone()
    }
}

/// Asserts that a client gets no connection, and that the error has these words.
#[track_caller]
fn unacceptable(client: &Tls, address: &Address, words: &[&str]) {
    let error = client
        .connect(address, Setup::default(), patience())
        .expect_err("one does not believe the other");
    let text = error.to_string();
    assert!(matches!(error, ConnectError::Unacceptable { .. }), "{text}");
    for word in words {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn both_know_who_the_other_is() {
    let (_directory, authority, server) = radar();
    let client = authority.settings("sonar", &[]);
    for versions in ["1.2", "1.3"] {
        let mutual = |settings: &TlsSettings| TlsSettings {
            verify: Verify::Mutual,
            ..with_versions(settings, versions)
        };
        let acceptor = listen(&tls(&mutual(&server)));
        let address = &acceptor.published()[0];
        let client_side = tls(&mutual(&client));
        thread::scope(|scope| {
            let near = scope.spawn(|| {
                let near = connect(&client_side, address);
                near.send_all(b"hello", patience()).expect("it is taken");
                near
            });
            let far = accept(&*acceptor);
            assert!(!far.is_established());
            assert_eq!(far.peer_certificate(), None);
            let mut room = [0; 100];
            assert_eq!(far.recv(&mut room, patience()), Ok(5));
            assert!(far.is_established());
            let near = near.join().expect("no panic");
            let der = |settings: &TlsSettings| {
                let file = settings.certificate.as_ref().expect("there is one");
                CertificateDer::from_pem_file(file)
                    .expect("a certificate")
                    .to_vec()
            };
            assert_eq!(far.peer_certificate(), Some(der(&client)));
            assert_eq!(near.peer_certificate(), Some(der(&server)));
        });
    }
}

#[test]
fn a_server_of_an_unknown_authority_or_another_name_is_not_believed() {
    let (directory, authority, settings) = radar();
    let others = Authority::new(directory.path(), "others");
    let server = EchoServer::start(listen(&tls(&settings)));
    let client = tls(&TlsSettings {
        authority: Some(others.file()),
        ..TlsSettings::default()
    });
    unacceptable(&client, &server.address, &["UnknownIssuer"]);

    let elsewhere = authority.settings("elsewhere", &["elsewhere.example"]);
    let unchecked = TlsSettings {
        verify: Verify::None,
        ..elsewhere
    };
    let server = EchoServer::start(listen(&tls(&unchecked)));
    let client = tls(&settings);
    unacceptable(&client, &server.address, &["elsewhere.example"]);

    // A server that asks for no proof gets none.
    let trusting = tls(&TlsSettings {
        verify: Verify::None,
        ..TlsSettings::default()
    });
    assert!(echoes(&*connect(&trusting, &server.address)));
}

#[test]
fn host_names_are_proved_as_addresses_are() {
    let (_directory, _authority, settings) = radar();
    let server = EchoServer::start(listen(&tls(&settings)));
    let (_, port) = server.address.as_host().expect("a host");
    let client = tls(&settings);
    assert!(echoes(&*connect(
        &client,
        &Address::host("localhost", port)
    )));
    let impossible = Address::host("127.0.0.2", port);
    let error = client.connect(&impossible, Setup::default(), patience());
    error.expect_err("there is no peer, or a wrong one");
}

#[test]
fn who_has_no_authority_connects_to_nobody() {
    let (_directory, _authority, settings) = radar();
    let server = EchoServer::start(listen(&tls(&settings)));
    let client = tls(&TlsSettings::default());
    unacceptable(&client, &server.address, &["authority"]);
}

#[test]
fn the_certificate_of_an_authority_is_not_that_of_a_server() {
    let (_directory, authority, settings) = radar();
    let server = authority.settings_of("abused", &["127.0.0.1"], |params| {
        params.is_ca = rcgen::IsCa::Ca(BasicConstraints::Unconstrained);
    });
    let server = EchoServer::start(listen(&tls(&server)));
    unacceptable(&tls(&settings), &server.address, &["CaUsedAsEndEntity"]);
}

#[test]
fn a_client_that_does_not_prove_who_it_is_gets_nothing() {
    let (directory, authority, settings) = radar();
    let others = Authority::new(directory.path(), "others");
    let stranger = TlsSettings {
        authority: Some(authority.file()),
        ..others.settings("stranger", &[])
    };
    let nobody = TlsSettings {
        authority: Some(authority.file()),
        ..TlsSettings::default()
    };
    let server = EchoServer::start(listen(&tls(&TlsSettings {
        verify: Verify::Mutual,
        ..settings.clone()
    })));
    for client in [&stranger, &nobody] {
        // In 1.2 the client hears of it before it is connected, in 1.3 after that (RFC 8446,
        // section 4.4.2.4).
        let older = tls(&with_versions(client, "1.2"));
        unacceptable(&older, &server.address, &[]);
        assert_eq!(server.end(), IoError::Violated);
        let newer = connect(&tls(&with_versions(client, "1.3")), &server.address);
        let end = newer.recv(&mut [0; 10], patience());
        assert!(
            matches!(end, Err(IoError::Violated | IoError::Closed)),
            "{end:?}"
        );
        assert_eq!(server.end(), IoError::Violated);
    }
    assert!(echoes(&*connect(&tls(&settings), &server.address)));
}

#[test]
fn without_a_common_version_there_is_no_connection() {
    let (_directory, _authority, settings) = radar();
    for (mine, others) in [("1.2", "1.3"), ("1.3", "1.2")] {
        let server = EchoServer::start(listen(&tls(&with_versions(&settings, others))));
        let client = tls(&with_versions(&settings, mine));
        unacceptable(&client, &server.address, &["ProtocolVersion"]);
        assert_eq!(server.end(), IoError::Violated);
    }
}

#[test]
fn half_open_and_slow_handshakes_disturb_nobody() {
    let (_directory, _authority, settings) = radar();
    let server = EchoServer::start(listen(&tls(&settings)));
    let client = tls(&settings);
    let hello = client_hello();
    let mut silent: Vec<_> = (0..50).map(|_| raw(&server.address)).collect();
    let mut slow = raw(&server.address);
    for octet in &hello {
        slow.write_all(&[*octet]).expect("it listens");
        if octet % 16 == 0 {
            assert!(echoes(&*connect(&client, &server.address)));
        }
    }
    // The slow one is answered as soon as it has said all: a handshake record.
    let mut answer = [0; 1];
    slow.read_exact(&mut answer).expect("an answer");
    assert_eq!(answer, [HANDSHAKE]);
    // And the silent ones may still begin.
    silent[7].write_all(&hello).expect("it is open");
    silent[7].read_exact(&mut answer).expect("an answer");
    assert_eq!(answer, [HANDSHAKE]);
    // Half a hello, and gone.
    silent[8].write_all(&hello[..40]).expect("it is open");
    drop(silent.remove(8));
    assert_eq!(server.end(), IoError::Closed);
    assert!(echoes(&*connect(&client, &server.address)));
}

#[test]
fn what_is_no_handshake_ends_the_connection_with_an_alert() {
    let (_directory, _authority, settings) = radar();
    let server = EchoServer::start(listen(&tls(&settings)));
    let client = tls(&settings);
    for hostile in [
        // A client that speaks GIOP without TLS.
        &b"GIOP\x01\x02\x01\x00\x20\x00\x00\x00"[..],
        b"GET / HTTP/1.1\r\n\r\n",
        // A record of 65535 octets, which may have 16 KiB.
        &[HANDSHAKE, 3, 3, 0xff, 0xff, 1],
        // A hello of no length, and one of an unknown kind.
        &[HANDSHAKE, 3, 1, 0, 4, 1, 0, 0, 0],
        &[HANDSHAKE, 3, 1, 0, 4, 99, 0, 0, 0],
        // Application data before there are keys.
        &[23, 3, 3, 0, 1, 7],
        // SSL 2.
        &[0x80, 0x2e, 1, 0, 2, 0, 0x15, 0, 0, 0, 0x10],
    ] {
        let mut peer = raw(&server.address);
        peer.write_all(hostile).expect("it listens");
        let alert = alert_of(&mut peer);
        assert_eq!(server.end(), IoError::Violated, "{hostile:?}");
        assert!(alert.is_some(), "{hostile:?}");
        assert!(echoes(&*connect(&client, &server.address)));
    }
}

#[test]
fn a_handshake_message_without_an_end_is_cut_off() {
    let (_directory, _authority, settings) = radar();
    let server = EchoServer::start(listen(&tls(&settings)));
    let mut peer = raw(&server.address);
    let mut first = true;
    // Records of 16 KiB of one message of 65535 octets and more.
    let refused_after = (0..1000).find(|_| {
        let mut record = vec![HANDSHAKE, 3, 3, 0x40, 0];
        record.extend(if first {
            vec![1, 0, 0xff, 0xff]
        } else {
            vec![0; 4]
        });
        first = false;
        record.resize(5 + 0x4000, 0);
        peer.write_all(&record).is_err()
    });
    assert!(refused_after.is_some(), "16 MB were taken");
    assert_eq!(server.end(), IoError::Violated);
    assert!(echoes(&*connect(&tls(&settings), &server.address)));
}

#[test]
fn nobody_negotiates_anew() {
    let (_directory, authority, settings) = radar();
    let server = EchoServer::start(listen(&tls(&with_versions(&settings, "1.2"))));
    let (host, port) = server.address.as_host().expect("a host");
    let client = Command::new("openssl")
        .args([
            "s_client",
            "-tls1_2",
            "-connect",
            &format!("{host}:{port}"),
            "-CAfile",
        ])
        .arg(authority.file())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut client) = client else {
        let required = std::env::var("CHRONORB_PEERS").is_ok_and(|value| value == "required");
        assert!(!required, "CHRONORB_PEERS=required, and openssl is missing");
        println!("NOT RUN: it needs openssl (apt-get install openssl)");
        return;
    };
    let mut input = client.stdin.take().expect("it is piped");
    let mut output = BufReader::new(client.stdout.take().expect("it is piped"));
    input.write_all(b"hello\n").expect("it runs");
    let mut line = String::new();
    while line != "hello\n" {
        line.clear();
        let n = output.read_line(&mut line).expect("it is text");
        assert_ne!(n, 0, "there was no echo");
    }
    // By an `R` at the beginning of a line, openssl asks for a new handshake.
    input.write_all(b"R\n").expect("it runs");
    let said = client.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.contains("no renegotiation"), "{said}");
    assert!(echoes(&*connect(&tls(&settings), &server.address)));
}

#[test]
fn a_client_is_told_that_a_server_does_not_speak_tls() {
    let (_directory, _authority, settings) = radar();
    let client = tls(&settings);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = address_of(&listener);
    thread::scope(|scope| {
        scope.spawn(|| {
            // GIOP without TLS: a message error.
            let (mut peer, _) = listener.accept().expect("a client");
            let mut room = [0; 1000];
            let _ = peer.read(&mut room);
            let _ = peer.write_all(b"GIOP\x01\x02\x01\x06\x00\x00\x00\x00");
            let _ = peer.read(&mut room);
            // One that closes.
            let (mut peer, _) = listener.accept().expect("a client");
            let _ = peer.read(&mut room);
        });
        unacceptable(&client, &address, &["corrupt"]);
        let error = client.connect(&address, Setup::default(), patience());
        let error = error.expect_err("there was no handshake");
        assert!(matches!(error, ConnectError::Refused { .. }), "{error}");
        assert!(error.to_string().contains("closed"), "{error}");
    });
}

#[test]
fn a_client_waits_for_a_handshake_until_its_deadline() {
    let (_directory, _authority, settings) = radar();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = address_of(&listener);
    let error = tls(&settings).connect(&address, Setup::default(), soon());
    let error = error.expect_err("there is no answer");
    assert!(matches!(error, ConnectError::TimedOut { .. }), "{error}");
}

#[test]
fn an_end_that_nobody_announced_is_no_end_in_order() {
    let (_directory, authority, settings) = radar();
    for versions in ["1.2", "1.3"] {
        let acceptor = listen(&tls(&with_versions(&settings, versions)));
        let mut client = RawClient::connect(&acceptor.published()[0], &authority);
        let far = accept(&*acceptor);
        let mut room = [0; 100];
        thread::scope(|scope| {
            let client = scope.spawn(move || {
                client.send(b"half a mess");
                // The connection is cut, as any host in between can do.
                drop(client);
            });
            assert_eq!(far.recv(&mut room, patience()), Ok(11));
            client.join().expect("no panic");
        });
        assert_eq!(far.recv(&mut room, patience()), Err(IoError::Closed));
        assert_eq!(far.try_recv(&mut room), Err(IoError::Closed));
        assert!(far.is_stale());
    }
}

#[test]
fn what_follows_a_goodbye_holds_up_nobody() {
    let (_directory, authority, settings) = radar();
    let (address, server) = raw_handshake(&authority, |mut session, mut stream| {
        session.read_tls(&mut stream).expect("a client says hello");
        session.process_new_packets().expect("a right client");
        session.send_close_notify();
        let mut octets = Vec::new();
        while session.wants_write() {
            session.write_tls(&mut octets).expect("a vector takes all");
        }
        // More than is decrypted at a time.
        octets.resize(octets.len() + 16_000, 0);
        stream.write_all(&octets).expect("it is there");
        // The client says that it believes the server, and that it goes.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let near = connect(&tls(&settings), &address);
    assert_eq!(near.recv(&mut [0; 10], patience()), Err(IoError::Ended));
    assert!(near.is_stale());
    drop(near);
    server.join().expect("no panic");
}

#[test]
fn records_without_octets_do_not_hold_a_thread() {
    type Receive = fn(&dyn Connection) -> bool;
    let ways: [Receive; 4] = [
        |far| far.try_recv(&mut [0; 10]) == Err(IoError::Violated),
        |far| far.recv(&mut [0; 10], patience()) == Err(IoError::Violated),
        |far| far.recv_until_interrupted(&mut [0; 10], None) == Err(IoError::Violated),
        |far| far.is_stale(),
    ];
    let (_directory, authority, settings) = radar();
    for receive in ways {
        let acceptor = listen(&tls(&settings));
        let address = acceptor.published()[0].clone();
        let far = thread::scope(|scope| {
            let (begin, begun) = mpsc::channel::<()>();
            let (address, authority) = (&address, &authority);
            let flood = scope.spawn(move || {
                RawClient::flood_with_nothing(address, authority, || {
                    let _ = begun.recv();
                })
            });
            let far = accept(&*acceptor);
            while !far.is_established() {
                assert_eq!(far.try_recv(&mut [0; 10]), Err(IoError::WouldBlock));
            }
            // The flood does not come with the end of the handshake.
            drop(begin);
            let _flood = flood.join().expect("no panic");
            assert!(receive(&*far));
            far
        });
        drop(far);
    }
}

#[test]
fn a_handshake_octet_by_octet_has_no_more_time_than_another() {
    let (_directory, _authority, settings) = radar();
    let acceptor = listen(&tls(&settings));
    let mut peer = raw(&acceptor.published()[0]);
    let far = accept(&*acceptor);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let sender = scope.spawn(|| {
            // A long message that never has an end.
            let mut octets = vec![HANDSHAKE, 3, 3, 0x40, 0, 1, 0, 0x3f, 0xfc];
            octets.resize(16_000, 0);
            octets.into_iter().all(|octet| {
                thread::sleep(Duration::from_millis(1));
                !is_over.load(Ordering::Relaxed) && peer.write_all(&[octet]).is_ok()
            })
        });
        let limit = Some(Duration::from_millis(30));
        assert_eq!(far.recv_until_interrupted(&mut [0; 10], limit), Ok(None));
        is_over.store(true, Ordering::Relaxed);
        let has_sent_all = sender.join().expect("no panic");
        assert!(!has_sent_all, "it was waited for all of it");
    });
}

#[test]
fn what_somebody_changed_on_the_way_does_not_arrive() {
    let (_directory, authority, settings) = radar();
    let server = EchoServer::start(listen(&tls(&settings)));
    let mut client = RawClient::connect(&server.address, &authority);
    client.send(b"hello");
    assert_eq!(client.receive(5), b"hello");
    let mut record = client.encrypt(b"pay 10");
    *record.last_mut().expect("it is long") ^= 1;
    client.send_raw(&record);
    assert_eq!(server.end(), IoError::Violated);
}

#[test]
fn what_tls_says_to_itself_does_not_make_a_connection_stale() {
    let (_directory, authority, settings) = radar();
    // A server that gives out tickets after the handshake, which this one does not.
    let (address, server) = raw_server(&authority, |mut stream| {
        stream.write_all(b"welcome").expect("it is open");
        stream.flush().expect("it is open");
        let mut room = [0; 5];
        stream.read_exact(&mut room).expect("a greeting");
        assert_eq!(&room, b"hello");
        stream.write_all(b"hello").expect("it is open");
    });
    let client = connect(&tls(&with_versions(&settings, "1.3")), &address);
    // The tickets came first.
    let mut room = [0; 7];
    assert_eq!(client.recv(&mut room, patience()), Ok(7));
    assert!(!client.is_stale());
    client.send_all(b"hello", patience()).expect("it is open");
    while !client.is_stale() {
        thread::yield_now();
    }
    assert_eq!(client.recv(&mut room, patience()), Ok(5), "nothing is lost");
    assert_eq!(client.recv(&mut room, patience()), Err(IoError::Closed));
    server.join().expect("no panic");
}

#[test]
fn tickets_alone_do_not_make_a_connection_stale() {
    let (_directory, authority, settings) = radar();
    let (address, server) = raw_server(&authority, |mut stream| {
        stream.flush().expect("it is open");
        let _ = stream.read(&mut [0]);
    });
    let client = connect(&tls(&with_versions(&settings, "1.3")), &address);
    // The handshake is over on the other side when the tickets are here.
    rustix::event::poll(
        &mut [rustix::event::PollFd::new(
            &client,
            rustix::event::PollFlags::IN,
        )],
        None,
    )
    .expect("it is open");
    assert!(!client.is_stale());
    drop(client);
    server.join().expect("no panic");
}

#[test]
fn two_pieces_are_one_record() {
    let (_directory, _authority, settings) = radar();
    // Between both, a relay counts records and passes them on.
    let acceptor = listen(&tls(&settings));
    let (_, port) = acceptor.published()[0].as_host().expect("a host");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = address_of(&listener);
    thread::scope(|scope| {
        let counted = scope.spawn(|| {
            let (client, _) = listener.accept().expect("a client");
            let server = std::net::TcpStream::connect(("127.0.0.1", port)).expect("a server");
            crate::tls_peers::count_data_records(client, server)
        });
        let near = scope.spawn(|| {
            let near = connect(&tls(&settings), &address);
            near.send_both(&[1; 16], &[2; 100], patience())
                .expect("it is taken");
            near.send_both(&[3; 84], &vec![4; 16_300], patience())
                .expect("it is taken");
            near.send_both(&[5; 85], &vec![6; 16_300], patience())
                .expect("it is taken");
        });
        let far = accept(&*acceptor);
        let mut room = vec![0; 100_000];
        let mut received = 0;
        while let Ok(n) = far.recv(&mut room, patience()) {
            received += n;
        }
        near.join().expect("no panic");
        assert_eq!(received, 116 + 16_384 + 16_385);
        // The last message is longer than a record; then there is the goodbye.
        drop(far);
        assert_eq!(counted.join().expect("no panic"), 1 + 1 + 2);
    });
}

#[test]
fn both_directions_are_full_at_the_same_time() {
    const LEN: usize = 8 << 20;
    let (_directory, _authority, settings) = radar();
    let acceptor = listen(&tls(&settings));
    let client = tls(&settings);
    let (near, far) = thread::scope(|scope| {
        let near = scope.spawn(|| {
            let near = connect(&client, &acceptor.published()[0]);
            near.send_all(&[0], patience()).expect("it is taken");
            near
        });
        let far = accept(&*acceptor);
        assert_eq!(far.recv(&mut [0], patience()), Ok(1));
        (near.join().expect("no panic"), far)
    });
    thread::scope(|scope| {
        for (end, number) in [(&near, 1), (&far, 2)] {
            scope.spawn(move || {
                let octets = vec![number; LEN];
                end.send_all(&octets, patience()).expect("it is read");
            });
        }
        for (end, number) in [(near.as_ref(), 2), (far.as_ref(), 1)] {
            let mut received = 0;
            let mut room = vec![0; 50_000];
            // One after the other: the other direction stands still meanwhile, and must not hold
            // this one up.
            while received < LEN {
                let n = end.recv(&mut room, patience()).expect("more comes");
                assert!(room[..n].iter().all(|octet| *octet == number));
                received += n;
            }
        }
    });
}

#[test]
fn tcp_alone_does_not_get_in() {
    let (_directory, _authority, settings) = radar();
    let server = EchoServer::start(listen(&tls(&settings)));
    let plain = Tcp.connect(&server.address, Setup::default(), patience());
    let plain = plain.expect("it listens");
    plain.send_all(b"hello", patience()).expect("it is taken");
    assert_eq!(server.end(), IoError::Violated);
    let deadline = Deadline::after(Duration::from_secs(60));
    let mut answer = [0; 100];
    // An alert, and the end.
    while let Ok(n) = plain.recv(&mut answer, deadline) {
        assert_eq!(answer[0], 21, "{:?}", &answer[..n]);
    }
}

fn address_of(listener: &TcpListener) -> Address {
    let port = listener.local_addr().expect("it is bound").port();
    Address::host("127.0.0.1", port)
}

const HANDSHAKE: u8 = 22;
