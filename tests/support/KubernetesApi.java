import io.fabric8.kubernetes.client.server.mock.KubernetesCrudDispatcher;
import io.fabric8.kubernetes.client.server.mock.KubernetesMockServer;
import io.fabric8.mockwebserver.Context;
import io.fabric8.mockwebserver.MockWebServer;
import java.net.InetAddress;
import java.util.HashMap;

/** Keeps what it is given, and tells those who watch; on 127.0.0.1, at the port that is named. */
public class KubernetesApi {
  public static void main(String[] arguments) throws Exception {
    var server = new KubernetesMockServer(
        new Context(), new MockWebServer(), new HashMap<>(), new KubernetesCrudDispatcher(), false);
    server.init(InetAddress.getByName("127.0.0.1"), Integer.parseInt(arguments[0]));
    System.out.println("ready");
    Thread.currentThread().join();
  }
}
