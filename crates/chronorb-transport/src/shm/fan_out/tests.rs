use std::fs::File;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicU32;
use std::thread;

use chronorb_rt::Mapping;
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

use super::*;

const SMALL: FanOutOptions = FanOutOptions {
    slots: 8,
    octets: 64,
};

/// A ring with a reader. The socket of the publisher comes last.
fn pair(options: FanOutOptions) -> (Publisher, Reader, UnixStream) {
    let publisher = Publisher::create(options).unwrap();
    let (here, there) = UnixStream::pair().unwrap();
    publisher.offer().send(&here).unwrap();
    let reader = Reader::receive(there.into()).unwrap();
    (publisher, reader, here)
}

/// Polls until nothing is left. Returns the messages and the losses.
fn drain(reader: &mut Reader) -> (Vec<Vec<u8>>, u64) {
    let (mut messages, mut losses) = (Vec::new(), 0);
    while let Ok(Some(next)) = reader.poll() {
        match next {
            Reading::Message(octets) => messages.push(octets.to_vec()),
            Reading::Lost(number) => losses += number,
        }
    }
    (messages, losses)
}

#[test]
fn messages_of_any_parts_arrive_in_order() {
    let (mut publisher, mut reader, _here) = pair(SMALL);
    let all = (0..=64_u8).collect::<Vec<_>>();
    for len in 0..=64 {
        let (first, rest) = all[..len].split_at(len / 3);
        publisher.publish(&[first, &[], rest]).unwrap();
        assert_eq!(reader.poll().unwrap(), Some(Reading::Message(&all[..len])));
        assert_eq!(reader.poll().unwrap(), None);
    }
    let error = publisher.publish(&[&all]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the message has 65 octets, and a slot 64"
    );
    assert_eq!(reader.poll().unwrap(), None);
}

#[test]
fn a_reader_that_is_lapped_is_told_its_losses() {
    for published in 0..40_u8 {
        let (mut publisher, mut reader, _here) = pair(SMALL);
        let mut other = reader.clone();
        for number in 0..published {
            publisher.publish(&[&[number]]).unwrap();
            assert_eq!(drain(&mut other).0, [[number]]);
        }
        let (messages, lost) = drain(&mut reader);
        assert_eq!(messages.len() as u64 + lost, u64::from(published));
        assert_eq!(lost > 0, published > 8);
        let kept = published - messages.len() as u8..published;
        assert!(messages.into_iter().flatten().eq(kept));
    }
}

#[test]
fn a_new_reader_begins_with_the_next_message() {
    let mut publisher = Publisher::create(SMALL).unwrap();
    publisher.publish(&[b"before"]).unwrap();
    let (here, there) = UnixStream::pair().unwrap();
    publisher.offer().send(&here).unwrap();
    let mut reader = Reader::receive(there.into()).unwrap();
    publisher.publish(&[b"after"]).unwrap();
    assert_eq!(drain(&mut reader), (vec![b"after".to_vec()], 0));
}

#[test]
fn readers_cannot_write_to_the_ring() {
    let publisher = Publisher::create(SMALL).unwrap();
    let error = Mapping::shared(&publisher.files.ring, 0, 4096).unwrap_err();
    assert_eq!(error, Errno::PERM);
    let mut file = File::from(publisher.files.ring.try_clone().unwrap());
    assert!(file.write(&[1]).is_err());
    assert!(file.set_len(0).is_err());
}

#[test]
fn a_reader_that_sleeps_is_woken() {
    let (mut publisher, mut reader, _here) = pair(SMALL);
    let readers = (0..3).map(|_| {
        let mut reader = reader.clone();
        thread::spawn(move || {
            let mut messages = Vec::new();
            loop {
                match reader.poll() {
                    Ok(Some(Reading::Message(octets))) => messages.push(octets[0]),
                    Ok(Some(Reading::Lost(_))) => unreachable!("there is room for all"),
                    Ok(None) => reader.wait(forever()).unwrap(),
                    Err(error) => break (messages, error.to_string()),
                }
            }
        })
    });
    let readers: Vec<_> = readers.collect();
    for number in 0..8 {
        publisher.publish(&[&[number]]).unwrap();
        thread::yield_now();
    }
    drop(publisher);
    for each in readers {
        let (messages, end) = each.join().unwrap();
        assert!(messages.into_iter().eq(0..8));
        assert_eq!(end, "the publisher of the ring has ended");
    }
    assert_eq!(drain(&mut reader).0.len(), 8);
    assert!(matches!(reader.poll(), Err(FanOutError::Ended)));
    assert!(reader.wait(forever()).is_ok());
}

/// The publisher wakes one of the threads that sleep, which would wake others.
#[test]
fn a_message_wakes_one_thread_whatever_the_number_of_sleepers() {
    const SLEEPERS: usize = 16;
    let (mut publisher, reader, _here) = pair(SMALL);
    let seen = reader
        .cursor
        .arm(reader.source.memory.ring(), reader.source.memory.note());
    let seen = seen.expect("nothing was published");
    thread::scope(|scope| {
        for _ in 0..SLEEPERS {
            scope.spawn(|| {
                let bell = &reader.source.memory.ring().words.bell;
                futex::wait(bell, Flags::empty(), seen, None)
            });
        }
        let bell = &publisher.memory.ring().words.bell;
        let elsewhere = &publisher.memory.ring().words.ended;
        while asleep(bell, elsewhere) < SLEEPERS {
            thread::yield_now();
        }
        publisher.publish(&[b"message"]).unwrap();
        let bell = &publisher.memory.ring().words.bell;
        let others = futex::wake(bell, Flags::empty(), u32::MAX >> 1).unwrap();
        assert_eq!(others, SLEEPERS - 1);
    });
}

#[test]
fn one_wake_up_reaches_all_sleepers() {
    let bell = AtomicU32::new(7);
    let elsewhere = AtomicU32::new(0);
    thread::scope(|scope| {
        let sleepers = [(); 16]
            .map(|()| scope.spawn(|| word::sleep_in_chain(&bell, 7, Duration::from_secs(120))));
        while asleep(&bell, &elsewhere) < sleepers.len() {
            thread::yield_now();
        }
        word::wake_others(&bell, 1);
        assert_eq!(asleep(&bell, &elsewhere), sleepers.len());
        bell.store(8, sync::Ordering::Relaxed);
        word::wake_others(&bell, 1);
        for sleeper in sleepers {
            assert_eq!(sleeper.join().unwrap(), Woken::Otherwise);
        }
    });
}

/// Returns the number of threads that sleep at a word. They are moved to another one and back.
fn asleep(at: &AtomicU32, elsewhere: &AtomicU32) -> usize {
    let moved = |from, to| futex::requeue(from, Flags::empty(), 0, u32::MAX >> 1, to).unwrap();
    // One that fell asleep meanwhile is not counted.
    moved(at, elsewhere).min(moved(elsewhere, at))
}

#[test]
fn a_wait_ends_at_its_deadline() {
    let (_publisher, reader, _here) = pair(SMALL);
    reader.wait(Deadline::after(Duration::ZERO)).unwrap();
    reader
        .wait(Deadline::after(Duration::from_millis(1)))
        .unwrap();
}

#[test]
fn a_reader_that_removes_the_note_of_others_delays_them_only() {
    let (mut publisher, mut reader, _here) = pair(SMALL);
    let hostile = reader.clone();
    let note = || hostile.source.memory.note();
    thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            while reader.poll().unwrap().is_none() {
                reader.wait(forever()).unwrap();
            }
        });
        while note().swap(0, sync::Ordering::AcqRel) == 0 {
            thread::yield_now();
        }
        publisher.publish(&[b"message"]).unwrap();
        sleeper.join().unwrap();
    });
}

#[test]
fn a_publisher_whose_process_dies_is_noticed() {
    let (publisher, reader, here) = pair(SMALL);
    drop(here);
    let ended = reader.wait(forever());
    assert!(matches!(ended, Err(FanOutError::Ended)), "{ended:?}");
    drop(publisher);
}

#[test]
fn a_publisher_that_writes_rubbish_does_no_harm() {
    let mut dice = fastrand::Rng::with_seed(7);
    for _ in 0..2000 {
        let (mut publisher, mut reader, _here) = pair(SMALL);
        for _ in 0..dice.u8(0..20) {
            publisher.publish(&[b"message"]).unwrap();
        }
        let ring = publisher.memory.ring();
        let any = |dice: &mut fastrand::Rng| match dice.u8(0..4) {
            0 => dice.u64(0..40),
            1 => u64::MAX - dice.u64(0..40),
            2 => 1 << dice.u8(0..64),
            _ => dice.u64(..),
        };
        for _ in 0..dice.u8(1..6) {
            let slot = &ring.slots[dice.usize(0..ring.slots.len())];
            let value = any(&mut dice);
            match dice.u8(0..3) {
                0 => ring.words.tail.store(value, sync::Ordering::Relaxed),
                1 => slot.sequence.store(value, sync::Ordering::Relaxed),
                _ => slot.len.store(value as u32, sync::Ordering::Relaxed),
            }
            for _ in 0..dice.u8(0..20) {
                match reader.poll() {
                    Ok(Some(Reading::Message(octets))) => assert!(octets.len() <= 64),
                    Ok(_) => {}
                    Err(error) => assert!(matches!(error, FanOutError::Violated), "{error}"),
                }
                reader.wait(Deadline::after(Duration::ZERO)).unwrap();
            }
        }
    }
}

#[test]
fn offers_that_are_none_are_refused() {
    let refused = |send: &dyn Fn(&UnixStream)| {
        let (here, there) = UnixStream::pair().unwrap();
        send(&here);
        drop(here);
        Reader::receive(there.into()).unwrap_err().to_string()
    };
    let violated = FanOutError::Violated.to_string();
    assert_eq!(refused(&|_| {}), FanOutError::Ended.to_string());
    let write = |mut here: &UnixStream| here.write_all(&[7; 16]).unwrap();
    assert_eq!(refused(&|here| write(here)), violated);
    let files = |ring: OwnedFd, note: OwnedFd| FanOutFiles { ring, note };
    let made = || FanOutMemory::create(SMALL).unwrap().1;
    let unsealed = || memory_of_peers::create_file(8192).unwrap();
    let other = FanOutOptions {
        slots: 16,
        octets: 64,
    };
    let bad_size = FanOutOptions {
        slots: 3,
        octets: 64,
    };
    let holes = || {
        let file = memory_of_peers::create_file(memory::len(SMALL)).unwrap();
        rustix::fs::fcntl_add_seals(&file, memory_of_peers::PAGE_SEALS).unwrap();
        file
    };
    let plain = || OwnedFd::from(File::open("/dev/null").unwrap());
    let cases = [
        (files(unsealed(), made().note), SMALL),
        (files(holes(), made().note), SMALL),
        (files(made().ring, plain()), SMALL),
        (files(plain(), made().note), SMALL),
        (made(), other),
        (made(), bad_size),
    ];
    for (files, options) in &cases {
        let send = |here: &UnixStream| rendezvous::offer(here, files, *options).unwrap();
        assert_eq!(refused(&send), violated, "{options:?}");
    }
}

#[test]
fn a_reader_permits_a_size_and_a_time() {
    let limits = ReaderLimits {
        octets: 8192 + 8 * 64,
        patience: Duration::from_millis(10),
    };
    let publisher = Publisher::create(SMALL).unwrap();
    let offered = |limits: &ReaderLimits| {
        let (here, there) = UnixStream::pair().unwrap();
        publisher.offer().send(&here).unwrap();
        Reader::receive_within(there.into(), limits)
    };
    assert!(offered(&limits).is_ok());
    let least = limits.octets;
    let small = ReaderLimits {
        octets: least - 1,
        ..limits
    };
    match offered(&small).unwrap_err() {
        FanOutError::TooLarge { octets, most } => assert_eq!((octets, most), (least, least - 1)),
        error => panic!("{error}"),
    }
    let (_silent, there) = UnixStream::pair().unwrap();
    let silent = Reader::receive_within(there.into(), &limits);
    assert!(matches!(silent, Err(FanOutError::Late)), "{silent:?}");
    // One that does not accept, with readers that wait already.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ring");
    let socket = crate::uds::socket().unwrap();
    let name = rustix::net::SocketAddrUnix::new(&path).unwrap();
    rustix::net::bind(&socket, &name).unwrap();
    rustix::net::listen(&socket, 0).unwrap();
    let _waiting = UnixStream::connect(&path).unwrap();
    let late = Reader::join(&path, &limits);
    assert!(matches!(late, Err(FanOutError::Late)), "{late:?}");
}

#[test]
fn the_memory_of_a_ring_is_the_publishers() {
    let (_publisher, reader, _here) = pair(FanOutOptions {
        slots: 1024,
        octets: 4096,
    });
    let start = format!(
        "{:x}-",
        reader.source.memory.ring().words as *const _ as usize
    );
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let own = maps.lines().skip_while(|line| !line.starts_with(&start));
    let resident = own.into_iter().find(|line| line.starts_with("Rss:"));
    let kib = resident.and_then(|line| line.split_whitespace().nth(1));
    let kib: usize = kib.unwrap().parse().unwrap();
    assert!(kib < 1024, "{kib} KiB of a ring that was not read");
}

#[test]
fn a_listener_that_is_shut_down_accepts_no_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ring");
    let listener = Arc::new(FanOutListener::bind(&path).unwrap());
    let waits = {
        let listener = listener.clone();
        thread::spawn(move || listener.accept().unwrap_err().kind())
    };
    listener.shut_down();
    assert_eq!(waits.join().unwrap(), io::ErrorKind::InvalidInput);
    let refused = Reader::join(&path, &ReaderLimits::default());
    assert!(
        matches!(refused, Err(FanOutError::Socket(_))),
        "{refused:?}"
    );
    drop(listener);
    assert!(!path.exists());
}

#[test]
fn rings_of_impossible_sizes_are_refused() {
    for (slots, octets) in [(0, 64), (1, 64), (3, 64), (1 << 17, 64), (8, 8), (8, 96)] {
        let made = Publisher::create(FanOutOptions { slots, octets });
        assert!(matches!(made, Err(FanOutError::Size)), "{slots} {octets}");
    }
    let huge = FanOutOptions {
        slots: 1 << 16,
        octets: 1 << 20,
    };
    assert!(matches!(Publisher::create(huge), Err(FanOutError::Size)));
}

/// Every message that a reader gets is whole, however fast the publisher is.
#[test]
fn no_message_is_torn() {
    const MESSAGES: u64 = 20_000;
    let (mut publisher, reader, _here) = pair(FanOutOptions {
        slots: 4,
        octets: 256,
    });
    let readers = (0..3).map(|_| {
        let mut reader = reader.clone();
        thread::spawn(move || {
            let (mut taken, mut lost, mut last) = (0, 0, None);
            loop {
                match reader.poll() {
                    Ok(Some(Reading::Message(octets))) => {
                        let number = u64::from_ne_bytes(octets[..8].try_into().unwrap());
                        assert_eq!(octets.len(), 8 + number as usize % 249);
                        assert!(octets[8..].iter().all(|octet| *octet == number as u8));
                        assert!(last < Some(number));
                        last = Some(number);
                        taken += 1;
                    }
                    Ok(Some(Reading::Lost(number))) => lost += number,
                    Ok(None) => reader.wait(forever()).unwrap(),
                    Err(FanOutError::Ended) => break taken + lost,
                    Err(error) => panic!("{error}"),
                }
            }
        })
    });
    let readers: Vec<_> = readers.collect();
    for number in 0..MESSAGES {
        let rest = [number as u8; 256];
        let rest = &rest[..number as usize % 249];
        publisher.publish(&[&number.to_ne_bytes(), rest]).unwrap();
    }
    drop(publisher);
    for each in readers {
        assert_eq!(each.join().unwrap(), MESSAGES);
    }
}

fn forever() -> Deadline {
    Deadline::after(Duration::from_secs(120))
}
