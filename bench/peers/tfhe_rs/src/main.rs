// Times operations of tfhe-rs on one thread. The argument names the parameters. Reads lines "OPERATION REPS" and
// answers each with one line of JSON: {"op", "seconds": [...], "cpu_seconds": [...], "error": 0 or 1}, where 1 says
// that a result was wrong. Written from the documentation of the crate's public interface.
use std::hint::black_box;
use std::io::BufRead;
use std::time::Instant;

use tfhe::boolean::parameters::{DEFAULT_PARAMETERS, PARAMETERS_ERROR_PROB_2_POW_MINUS_165};
use tfhe::boolean::server_key::BinaryBooleanGates;
use tfhe::shortint::parameters::PARAM_MESSAGE_2_CARRY_2;
use tfhe::{boolean, shortint};

/// Processor time of the whole process, in seconds.
fn cpu_seconds() -> f64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    assert_eq!(failed, 0);
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

/// Reads the requests. `run` does the operation and says whether its result is right.
fn serve(about: &str, mut run: impl FnMut() -> Box<dyn FnOnce() -> bool>) {
    println!("{{\"library\": \"tfhe-rs 1.8.2\", \"params\": \"{about}\"}}");
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let mut words = line.split_whitespace();
        let (op, reps) = (words.next().unwrap(), words.next().unwrap().parse::<usize>().unwrap());
        let (mut wall, mut cpu) = (vec![], vec![]);
        let mut right = run()();
        for _ in 0..reps {
            let (start, busy) = (Instant::now(), cpu_seconds());
            let check = run();
            cpu.push(cpu_seconds() - busy);
            wall.push(start.elapsed().as_secs_f64());
            right &= check();
        }
        let error = if right { 0 } else { 1 };
        println!("{{\"op\": \"{op}\", \"seconds\": {wall:?}, \"cpu_seconds\": {cpu:?}, \"error\": {error}}}");
    }
}

fn nand(about: &str, params: boolean::parameters::BooleanParameters) {
    let client = boolean::client_key::ClientKey::new(&params);
    let server = boolean::server_key::ServerKey::new(&client);
    let (a, b) = (client.encrypt(true), client.encrypt(true));
    serve(about, || {
        let c = black_box(server.nand(&a, &b));
        let client = client.clone();
        Box::new(move || !client.decrypt(&c))
    });
}

fn look_up() {
    let client = shortint::ClientKey::new(PARAM_MESSAGE_2_CARRY_2);
    let server = shortint::ServerKey::new(&client);
    let table = server.generate_lookup_table(|x| (x * x) % 4);
    let a = client.encrypt(3);
    serve("PARAM_MESSAGE_2_CARRY_2, n 918, k 1, N 2048, p_fail 2^-129.6", || {
        let c = black_box(server.apply_lookup_table(&a, &table));
        let client = client.clone();
        Box::new(move || client.decrypt(&c) == 1)
    });
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("boolean_2m165") => nand("PARAMETERS_ERROR_PROB_2_POW_MINUS_165", PARAMETERS_ERROR_PROB_2_POW_MINUS_165),
        Some("boolean_2m64") => nand("DEFAULT_PARAMETERS, p_fail 2^-64", DEFAULT_PARAMETERS),
        Some("message_2_carry_2") => look_up(),
        _ => {
            eprintln!("name the parameters: boolean_2m165, boolean_2m64 or message_2_carry_2");
            std::process::exit(2);
        }
    }
}
