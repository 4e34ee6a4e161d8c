// SPDX-License-Identifier: Apache-2.0
// A server that speaks MongoDB's protocol and keeps everything in memory: java -cp 'JARS/*' Server.java PORT [ADDRESS
// [THREADS SECONDS]]. THREADS: commands that are served at a time; SECONDS: service time of each. MONGODB_USER and
// MONGODB_PASSWORD in its environment: the only user that it serves.
import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.QueryResult;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import de.bwaldvogel.mongo.bson.BinData;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.exception.MongoServerError;
import de.bwaldvogel.mongo.wire.message.MongoQuery;
import io.netty.channel.Channel;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import javax.crypto.Mac;
import javax.crypto.SecretKeyFactory;
import javax.crypto.spec.PBEKeySpec;
import javax.crypto.spec.SecretKeySpec;

public class Server {
  public static void main(String[] arguments) {
    String user = System.getenv("MONGODB_USER");
    MemoryBackend backend = new MemoryBackend();
    if (user != null)
      backend = new OneUser(user, System.getenv("MONGODB_PASSWORD"));
    else if (arguments.length > 2)
      backend = new Held(Integer.parseInt(arguments[2]), Double.parseDouble(arguments[3]));
    String address = arguments.length > 1 ? arguments[1] : "127.0.0.1";
    new MongoServer(backend).bind(address, Integer.parseInt(arguments[0]));
  }

  /** Commands that a client may send before it has proved who it is, as mongod has it. */
  static final Set<String> GREETINGS = Set.of("hello", "ismaster", "ping", "buildinfo", "endsessions");
}

/** Constant service time of each command but greetings, with a limit of those at a time; others wait in order. */
class Held extends MemoryBackend {
  private final long[] freeFrom; // of each thread, by the clock of System.nanoTime
  private final long service; // nanoseconds

  Held(int threads, double seconds) {
    freeFrom = new long[threads];
    Arrays.fill(freeFrom, System.nanoTime());
    service = Math.round(seconds * 1e9);
  }

  @Override
  public Document handleCommand(Channel channel, String database, String command, Document query) {
    if (!Server.GREETINGS.contains(command.toLowerCase()))
      waitUntil(endOfService());
    return super.handleCommand(channel, database, command, query);
  }

  private synchronized long endOfService() {
    int first = 0;
    for (int i = 1; i < freeFrom.length; ++i)
      first = freeFrom[i] < freeFrom[first] ? i : first;
    freeFrom[first] = Math.max(freeFrom[first], System.nanoTime()) + service;
    return freeFrom[first];
  }

  private static void waitUntil(long end) {
    for (long rest; (rest = end - System.nanoTime()) > 0;)
      LockSupport.parkNanos(rest);
  }
}

/** Answers nothing but greetings before the user has proved by SCRAM-SHA-256 (RFC 5802, RFC 7677) that it knows the password, connection by connection. */
class OneUser extends MemoryBackend {
  private static final int ITERATIONS = 15000;
  private static final SecureRandom RANDOM = new SecureRandom();

  /** What was said so far: the client's first message without its header, and the server's. */
  private record Conversation(String clientFirst, String serverFirst) {}

  private final String user;
  private final String password;
  private final byte[] salt = random(28); // as long as clients of MongoDB expect it
  private final Map<Channel, Conversation> asked = new ConcurrentHashMap<>();
  private final Set<Channel> proved = ConcurrentHashMap.newKeySet();

  OneUser(String user, String password) {
    this.user = user;
    this.password = password;
  }

  @Override
  public Document handleCommand(Channel channel, String database, String command, Document query) {
    try {
      switch (command.toLowerCase()) {
        case "saslstart":
          return first(channel, text(query));
        case "saslcontinue":
          return last(channel, text(query));
        default:
      }
    } catch (java.security.GeneralSecurityException error) {
      throw new IllegalStateException(error);
    }
    if (!proved.contains(channel) && !Server.GREETINGS.contains(command.toLowerCase()))
      throw new MongoServerError(13, "Unauthorized", "Command " + command + " requires authentication");
    Document answer = super.handleCommand(channel, database, command, query);
    if (query.containsKey("saslSupportedMechs"))
      answer.put("saslSupportedMechs", List.of("SCRAM-SHA-256"));
    return answer;
  }

  @Override
  public QueryResult handleQuery(MongoQuery query) {
    if (!proved.contains(query.getChannel()))
      throw new MongoServerError(13, "Unauthorized", "Queries require authentication");
    return super.handleQuery(query);
  }

  @Override
  public void handleClose(Channel channel) {
    asked.remove(channel);
    proved.remove(channel);
    super.handleClose(channel);
  }

  private Document first(Channel channel, String message) {
    String bare = message.substring(message.indexOf(',', message.indexOf(',') + 1) + 1);
    Map<String, String> said = attributes(bare);
    if (!user.equals(said.get("n")))
      throw refused();
    String answer = "r=" + said.get("r") + Base64.getEncoder().encodeToString(random(18)) + ",s=" + Base64.getEncoder().encodeToString(salt) + ",i=" + ITERATIONS;
    asked.put(channel, new Conversation(bare, answer));
    return reply(answer, false);
  }

  private Document last(Channel channel, String message) throws java.security.GeneralSecurityException {
    Conversation before = asked.remove(channel);
    if (before == null)
      throw refused();
    int proof = message.lastIndexOf(",p=");
    Map<String, String> said = attributes(message);
    byte[] salted = SecretKeyFactory.getInstance("PBKDF2WithHmacSHA256").generateSecret(new PBEKeySpec(password.toCharArray(), salt, ITERATIONS, 256)).getEncoded();
    String all = before.clientFirst() + "," + before.serverFirst() + "," + message.substring(0, proof);
    byte[] clientKey = hmac(salted, "Client Key");
    byte[] signature = hmac(MessageDigest.getInstance("SHA-256").digest(clientKey), all);
    byte[] expected = new byte[clientKey.length];
    for (int i = 0; i < expected.length; ++i)
      expected[i] = (byte) (clientKey[i] ^ signature[i]);
    boolean sameNonce = attributes(before.serverFirst()).get("r").equals(said.get("r"));
    if (!sameNonce || !Arrays.equals(expected, Base64.getDecoder().decode(said.get("p"))))
      throw refused();
    proved.add(channel);
    return reply("v=" + Base64.getEncoder().encodeToString(hmac(hmac(salted, "Server Key"), all)), true);
  }

  private static MongoServerError refused() {
    return new MongoServerError(18, "AuthenticationFailed", "Authentication failed.");
  }

  private static Document reply(String text, boolean done) {
    return new Document("conversationId", 1).append("done", done).append("payload", new BinData(text.getBytes(StandardCharsets.UTF_8))).append("ok", 1.0);
  }

  private static String text(Document query) {
    return new String(((BinData) query.get("payload")).getData(), StandardCharsets.UTF_8);
  }

  private static Map<String, String> attributes(String message) {
    return Arrays.stream(message.split(",")).collect(Collectors.toMap(part -> part.substring(0, 1), part -> part.substring(2)));
  }

  private static byte[] hmac(byte[] key, String text) throws java.security.GeneralSecurityException {
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(key, "HmacSHA256"));
    return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
  }

  private static byte[] random(int size) {
    byte[] bytes = new byte[size];
    RANDOM.nextBytes(bytes);
    return bytes;
  }
}
