//! Rates of writing and reading sequences in both byte orders, beside a copy of the same memory.
//!
//! `cargo run --release -p chronorb-cdr --example throughput`

use std::hint::black_box;
use std::time::{Duration, Instant};

use chronorb_cdr::{
    Arena, Cdr, CdrError, Decoder, Encoder, Endian, Flat, FlatReader, FlatWriter, Frame, Layout,
};

fn main() -> Result<(), CdrError> {
    let tick = Tick {
        price: 1.5,
        amount: -2,
        side: 3,
    };
    println!("GB/s, the best of {ROUNDS} rounds        write     read     copy");
    for endian in [Endian::NATIVE, other_than_native()] {
        measure("octets, 1 MiB", &vec![7_u8; 1 << 20], endian)?;
        measure("shorts, 64 KiB", &vec![-7_i16; 1 << 15], endian)?;
        measure("longs, 64 KiB", &vec![-7_i32; 1 << 14], endian)?;
        measure("doubles, 64 KiB", &vec![0.5_f64; 1 << 13], endian)?;
        measure("structs, 64 KiB", &vec![tick; 1 << 12], endian)?;
        measure("one by one", &vec![OneByOne(tick); 1 << 12], endian)?;
    }
    Ok(())
}

fn measure<T: for<'a> Cdr<'a>>(name: &str, items: &[T], endian: Endian) -> Result<(), CdrError> {
    let mut frame = Frame::new(2 << 20, 2 << 20);
    let mut arena = Arena::new(2 << 20);
    let mut copy = items.to_vec();
    let (mut write, mut read, mut plain) = (Duration::MAX, Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        frame.clear();
        let begun = Instant::now();
        // As in a message, elements do not start at a multiple of 8.
        Encoder::new(&mut frame, endian).write_seq(black_box(items))?;
        write = write.min(begun.elapsed());

        arena.reset();
        let mut d = frame.decoder(0, endian, &arena);
        let begun = Instant::now();
        black_box(d.read_seq::<T>()?);
        read = read.min(begun.elapsed());

        let begun = Instant::now();
        black_box(&mut copy).copy_from_slice(black_box(items));
        plain = plain.min(begun.elapsed());
    }
    let size = size_of_val(items) as f64;
    let rate = |time: Duration| size / time.as_nanos().max(1) as f64;
    let (write, read, plain) = (rate(write), rate(read), rate(plain));
    println!("{name:17} {endian:7?} {write:16.1} {read:8.1} {plain:8.1}");
    Ok(())
}

fn other_than_native() -> Endian {
    Endian::from_flag(!Endian::NATIVE.is_little())
}

/// A struct as the IDL compiler makes it.
#[derive(Clone, Copy)]
struct Tick {
    price: f64,
    amount: i32,
    side: i16,
}

impl<'a> Cdr<'a> for Tick {
    const MIN_SIZE: usize = 14;

    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_f64(self.price)?;
        e.write_i32(self.amount)?;
        e.write_i16(self.side)
    }

    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        Ok(Self {
            price: d.read_f64()?,
            amount: d.read_i32()?,
            side: d.read_i16()?,
        })
    }

    fn encode_slice(items: &[Self], e: &mut Encoder<'_>) -> Result<(), CdrError> {
        e.write_flat(items)
    }

    fn decode_slice(d: &mut Decoder<'a>, n: usize) -> Result<&'a [Self], CdrError> {
        d.read_flat(n)
    }
}

impl Flat for Tick {
    const LAYOUT: Layout = Layout::EMPTY
        .then(<f64 as Flat>::LAYOUT)
        .then(<i32 as Flat>::LAYOUT)
        .then(<i16 as Flat>::LAYOUT);

    #[inline(always)]
    fn get<const SWAP: bool>(r: &mut FlatReader<'_, SWAP>) -> Self {
        Self {
            price: Flat::get(r),
            amount: Flat::get(r),
            side: Flat::get(r),
        }
    }

    #[inline(always)]
    fn put(&self, w: &mut FlatWriter<'_>) {
        Flat::put(&self.price, w);
        Flat::put(&self.amount, w);
        Flat::put(&self.side, w);
    }
}

/// The same without what makes many of it fast.
#[derive(Clone, Copy)]
struct OneByOne(Tick);

impl<'a> Cdr<'a> for OneByOne {
    const MIN_SIZE: usize = Tick::MIN_SIZE;

    fn encode(&self, e: &mut Encoder<'_>) -> Result<(), CdrError> {
        self.0.encode(e)
    }

    fn decode(d: &mut Decoder<'a>) -> Result<Self, CdrError> {
        Tick::decode(d).map(Self)
    }
}

const ROUNDS: u32 = 200;
